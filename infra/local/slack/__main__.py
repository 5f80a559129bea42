"""Run the local Slack as a process of its own."""

from infra.local.slack.server import main

if __name__ == "__main__":
    main()
