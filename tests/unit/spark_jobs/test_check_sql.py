"""The query in a report finds the rows behind a check's measure."""

from lakegate.contract.model import Contract, parse
from spark_jobs.audit.check_sql import evidence_query
from tests.unit.contract.contract_texts import contract_text


def queries(contract: Contract) -> list[str]:
    """Return the queries of a contract's checks, in order."""
    return [
        evidence_query(check, contract, lambda table: f"lake.{table}") for check in contract.checks
    ]


def test_each_kind_of_check_has_a_query_for_its_rows() -> None:
    """Bad rows, repeated keys and missing references have a query; an SQL rule is its own."""
    contract = parse(
        contract_text(
            "- name: od`d. sku\n"
            "  logicalType: string\n"
            "  unique: true\n"
            "  relationships: [{to: goods.sku, customProperties: ["
            "{property: where, value: id > 3}]}]\n"
            "  quality: [{type: sql, query: 'SELECT count({column}) FROM {object}', mustBe: 0}]"
        ),
        "a.yaml",
    )
    assert queries(contract) == [
        "SELECT * FROM lake.shop.orders WHERE coalesce(`id` IS NULL, false)",
        (
            "SELECT `od``d. sku`, count(*) AS rows FROM lake.shop.orders "
            "WHERE true AND `od``d. sku` IS NOT NULL GROUP BY `od``d. sku` HAVING count(*) > 1"
        ),
        "SELECT count(`od``d. sku`) FROM `shop`.`orders`",
        (
            "SELECT * FROM (SELECT * FROM lake.shop.orders WHERE coalesce((id > 3), false) AND "
            "`od``d. sku` IS NOT NULL) a "
            "LEFT ANTI JOIN lake.shop.goods b ON a.`od``d. sku` = b.`sku`"
        ),
    ]


def test_a_number_of_rows_has_no_row_behind_it() -> None:
    """A check without rows at fault has no query."""
    contract = parse(contract_text(quality="- {metric: rowCount, mustBe: 3}"), "a.yaml")
    assert queries(contract)[-1] == ""
