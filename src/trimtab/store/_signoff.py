"""What a study's sign-off policy must hold: keys that are keys, one person behind a shared one, a length of time."""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.domain.signoff import shared_keys
from trimtab.domain.study import Study
from trimtab.domain.verdict import ROLE_TITLES
from trimtab.errors import StudyError
from trimtab.store._keys import raw_key
from trimtab.store._seconds import seconds
from trimtab.store._strict import Fault


def signoff_faults(study: Study) -> Iterator[Fault]:
    """Every broken rule of ``[signoff]``."""
    for role, key in study.signoff.keys.items():
        if raw_key(key) is None:
            fix = 'write the line of the .pub file: "ssh-ed25519 AAAA... comment"'
            yield Fault(("signoff", "keys", role), "is no OpenSSH ed25519 public key", fix)
    for first, second in shared_keys(study):
        yield Fault(
            ("signoff", "keys", second),
            f"is the key of the {ROLE_TITLES[first]} too",
            "use a key for each person; where one person has both roles, give both the same name in [owners]",
        )
    try:
        seconds(study.signoff.expires)
    except StudyError as error:
        yield Fault(("signoff", "expires"), error.what, error.fix)
