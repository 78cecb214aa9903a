"""Changes jobs with commands, as people do."""

import os

from accounts import missed, token_of
from stage import Stage


class Commands(Stage):
    def command(self) -> None:
        gesture = self.chance.choices(
            ["hold", "release", "retry", "cancel", "clean", "status", "verify", "prioritise", "url"], [5, 5, 6, 3, 0.5, 1, 0.1, 6, 6]
        )[0]
        if gesture in ("clean", "verify"):
            self.ask(gesture)
            return
        if gesture == "status":
            self.ask("status", *self.chance.choice([[], ["--all"], ["--json"]]))
            return
        if gesture in ("prioritise", "url"):
            self.rewrite_text(gesture)
            return
        if gesture != "cancel" and self.chance.random() < 0.03:
            # With --all the command takes all jobs, so the name does not matter.
            for descriptor, _, _ in self.writing:
                self.accounts.spoil(token_of(descriptor))
            self.ask(gesture, "--all")
            return
        sources = {"hold": ("new", "cur", "partial"), "release": ("hold",), "retry": ("partial", "failed")}
        if (found := self.any(*sources.get(gesture, ("new", "cur", "partial", "hold", "failed")))) is None:
            return
        state, name = found
        path = self.accounts.place(state, name)
        if state == "cur":
            name = name.rpartition(":")[0] or name
        if gesture == "cancel":
            self.cancel(path, state, name)
        else:
            self.ask(gesture, "--", self.chance.choice([name, name, f"{state}/{name}"]))

    def rewrite_text(self, gesture: str) -> None:
        """What puts a new file in the job's place; sometimes killed on the way."""
        if (found := self.any("new", "new", "cur", "partial", "partial", "hold", "failed")) is None:
            return
        state, name = found
        path = self.accounts.place(state, name)
        if (token := self.accounts.token(path)) is None or state == "cur" and gesture == "prioritise":
            return
        if state == "cur":
            name = name.rpartition(":")[0] or name
        if gesture == "prioritise":
            words = [gesture, self.chance.choice(["--low", "--normal"]), "--", name]
        else:
            words = [gesture, "--", name, self.server.url(self.accounts.texts[token].file)]
        if self.chance.random() < 0.3:
            self.ask_and_kill(*words)
        else:
            self.ask(*words)

    def cancel(self, path: str, state: str, name: str) -> None:
        """The command's output tells which job it changed."""
        token = self.accounts.token(path)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            missed(error)
            return
        links = os.fstat(descriptor).st_nlink
        status, said = self.ask("cancel", "-v", "--", name)
        self.accounts.note(f"  cancel {path} {token}: {status} {said}")
        left = os.fstat(descriptor).st_nlink
        os.close(descriptor)
        if left < links and status == 0:
            if token:
                self.accounts.texts[token].files -= 1
        # With another status, a worker has replaced the file by a copy meanwhile. If the command had removed it after
        # all, the job would be missing at the end.
        elif status == 0:
            self.accounts.doubt(path)
            # In cur a hand may have made it a name that is no claim, and the command was given what is left of that.
            self.accounts.doubt(name)
