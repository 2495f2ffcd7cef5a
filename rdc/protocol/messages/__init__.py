"""Every message of the protocol, as an attribute of this package; one module per topic declares them.

Both sides of rdc.session send and receive them. S is the source's side and D the destination's, whichever of
them dialled. What a message declares is in rdc.protocol.wire.codec.
"""

from __future__ import annotations

from rdc.protocol.messages import content, course, uniting  # noqa: F401 - their classes register themselves
from rdc.protocol.messages.content import NO_TRAITS as NO_TRAITS
from rdc.protocol.messages.course import SourceState as SourceState
from rdc.protocol.wire.codec import Message as Message
from rdc.protocol.wire.codec import Role as Role
from rdc.protocol.wire.codec import State as State
from rdc.protocol.wire.codec import answers_to as answers_to
from rdc.protocol.wire.codec import decode as decode
from rdc.protocol.wire.codec import encode as encode
from rdc.protocol.wire.codec import encode_parts as encode_parts
from rdc.protocol.wire.codec import message_kinds as message_kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.protocol.messages.content import *  # noqa: F403 - for mypy
    from rdc.protocol.messages.course import *  # noqa: F403 - for mypy
    from rdc.protocol.messages.uniting import *  # noqa: F403 - for mypy
else:
    # The declared messages, and nothing else of these modules: field types have names like Code, too.
    globals().update({message.__name__: message for message in message_kinds().values()})
