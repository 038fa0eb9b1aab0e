"""Slack questions, answers, workspaces and installations in the store: one transaction per method."""

from gpuplan.catalog.store import slack_answers, slack_threads, slack_workspaces
from gpuplan.catalog.store.slack_answers import SlackAnswer, count_waiting, write_answer
from gpuplan.catalog.store.store_part import StorePart, reads, writes


class SlackStore(StorePart):
    """The Slack data in the store."""

    first_time = writes(slack_answers.first_time)
    spend = writes(slack_answers.spend)
    answer = reads(slack_answers.read_answer)
    due = reads(slack_answers.read_due)
    hold = writes(slack_answers.hold)
    answered = writes(slack_answers.write_message)
    settle = writes(slack_answers.settle)
    last_plan = reads(slack_answers.last_plan)
    asked_for = reads(slack_answers.asked_for)
    follow = writes(slack_threads.write_thread)
    plan_of_thread = reads(slack_threads.read_thread)
    allow = writes(slack_workspaces.write_workspace)
    workspaces = reads(slack_workspaces.read_workspaces)
    workspace = reads(slack_workspaces.find_workspace)
    remove = writes(slack_workspaces.delete_workspace)
    install = writes(slack_workspaces.write_installation)
    installation = reads(slack_workspaces.read_installation)
    uninstall = writes(slack_workspaces.delete_installation)

    def ask(self, answer: SlackAnswer, *, most_waiting: int) -> bool:
        """Store a question; False, without storing it, if its workspace already has too many waiting."""
        with self._writing() as connection:
            if count_waiting(connection, answer.team_id) >= most_waiting:
                return False
            write_answer(connection, answer)
            return True
