"""A view that runs again by itself leaves an open dialog alone."""

from streamlit.testing.v1 import AppTest


def test_a_dialog_stays_open_while_files_come_in() -> None:
    """What changes under an open dialog runs the view again only once that is closed."""

    def script() -> None:
        import streamlit as st

        from dashboard.serve import watching

        watching.begin()
        runs = st.session_state.get("runs", 0) + 1
        st.session_state["runs"] = runs
        asked = st.button("Publish …")
        if asked:
            watching.dialog("Publish", lambda: st.text("Why?"))
        watching.watch(False, lambda: asked or runs == 3)

    app = AppTest.from_function(script).run()
    app = app.button[0].click().run()
    assert [each.value for each in app.text] == ["Why?"]
    app = app.run()
    assert not app.text
    assert app.session_state["runs"] == 4, "without a dialog a change runs the view again"


def test_what_a_dialog_cannot_read_is_told_in_it() -> None:
    """An answer runs the dialog alone, so that no view around it shows its errors."""

    def script() -> None:
        from dashboard.serve import watching
        from lakegate.errors import Transient

        def fail() -> None:
            raise Transient("LEDGER_UNAVAILABLE", "the ledger does not answer")

        watching.begin()
        watching.dialog("Publish", fail)

    app = AppTest.from_function(script).run()
    assert not app.exception
    assert [each.value for each in app.text] == ["the ledger does not answer (LEDGER_UNAVAILABLE)"]
