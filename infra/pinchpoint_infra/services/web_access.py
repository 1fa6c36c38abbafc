"""Access rights of the site: groups, and access lists that name them."""

from __future__ import annotations

from typing import Any, NamedTuple

from starlette.responses import Response

from pinchpoint_infra.content.database import list_id
from pinchpoint_infra.services.odata import Call, RefusalError
from pinchpoint_infra.services.odata_answer import Entity, collection, entity
from pinchpoint_infra.services.web_files import item_link
from pinchpoint_infra.services.web_people import USER_IDS_FROM, made_up

_GROUP = 8  # SP.PrincipalType: SharePointGroup
_PEOPLE_WITH_ACCESS = 20
"""Access lists of single documents name one of this many users."""


class _Role(NamedTuple):
    id: int
    name: str


class _Group(NamedTuple):
    id: int
    name: str
    role: _Role


_CONTRIBUTE = _Role(1_073_741_827, "Contribute")  # the ids are SharePoint's own
GROUPS = (
    _Group(3, "Corpus Owners", _Role(1_073_741_829, "Full Control")),
    _Group(5, "Corpus Members", _Role(1_073_741_830, "Edit")),
    _Group(4, "Corpus Visitors", _Role(1_073_741_826, "Read")),
)


async def groups(call: Call) -> Response:
    """The groups of the site."""
    return collection(call, [_group(each) for each in GROUPS])


async def group(call: Call) -> Response:
    """One of them, by its number or its name."""
    for each in GROUPS:
        if call.argument.casefold() in {str(each.id), each.name.casefold()}:
            return entity(call, _group(each))
    raise RefusalError(404, f"there is no group {call.argument!a}")


async def site_access(call: Call) -> Response:
    """Who may do what with the site."""
    return collection(call, [_assignment("Web", _group(each), each.role) for each in GROUPS])


def list_access(title: str) -> list[Entity]:
    """Who may do what with a list; every list grants the same."""
    where = f"Web/Lists(guid'{list_id(title)}')"
    return [_assignment(where, _group(each), each.role) for each in GROUPS]


def item_access(title: str, number: int) -> list[Entity]:
    """Who may do what with a document that has its own access list: its owners and one person."""
    where, owners = item_link(title, number), GROUPS[0]
    person = made_up(USER_IDS_FROM + number % _PEOPLE_WITH_ACCESS + 1)
    return [_assignment(where, _group(owners), owners.role), _assignment(where, person, _CONTRIBUTE)]


def _group(found: _Group) -> Entity:
    fields = {"Id": found.id, "LoginName": found.name, "Title": found.name, "PrincipalType": _GROUP}
    return Entity("SP.Group", f"Web/SiteGroups/GetById({found.id})", fields)


def _assignment(where: str, member: Entity, role: _Role) -> Entity:
    number = member.fields["Id"]
    binding = Entity(
        "SP.RoleDefinition", f"Web/RoleDefinitions({role.id})", {"Id": role.id, "Name": role.name}
    )
    fields: dict[str, Any] = {
        "PrincipalId": number,
        "Member": member,
        "RoleDefinitionBindings": [binding],
    }
    return Entity("SP.RoleAssignment", f"{where}/RoleAssignments/GetByPrincipalId({number})", fields)
