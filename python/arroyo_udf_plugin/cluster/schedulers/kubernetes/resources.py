"""The calls of the Kubernetes API: resources of the operator that have our labels, in one namespace.

    resources = Resources(lightkube.Client(), "streams")
    resources.all()                      what is there now
    resources.create(manifest)           Refused: the API server says why not; Away: it may be there now, or not

Guarantees: `all` is what the API server has, not a copy that may be old. What has an unexpected form is an error, and
never counts as absent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import httpx2
import msgspec
from lightkube import ApiError, Client
from lightkube.generic_resource import GenericNamespacedResource, create_namespaced_resource
from lightkube.types import CascadeType, PatchType

from ....errors import ArroyoUdfError
from .manifest import API_VERSION, GENERATION, JOB, KINDS, ResourceKind
from .observed import Observed

_GROUP, _, _VERSION = API_VERSION.partition("/")
_TYPES = {kind: create_namespaced_resource(_GROUP, _VERSION, kind.name, kind.plural) for kind in KINDS}
_NOT_FOUND, _CONFLICT, _TOO_MANY, _FAULT = 404, 409, 429, 500

Result = TypeVar("Result")


class KubernetesAway(ArroyoUdfError):
    """The API server does not answer, or not as it should: what was asked for may be done or not."""


class KubernetesRefused(ArroyoUdfError):
    """The API server has answered with an error. is_invalid: with the resource itself."""

    def __init__(self, message: str, is_invalid: bool) -> None:
        super().__init__(message)
        self.is_invalid = is_invalid


class Resources:
    def __init__(self, client: Client, namespace: str) -> None:
        self._client, self._namespace = client, namespace

    def all(self) -> list[Observed]:
        return [seen for kind in KINDS for seen in self._of_kind(kind)]

    def create(self, manifest: Mapping[str, Any]) -> None:
        """Does nothing if this generation is there."""
        kind = next(kind for kind in KINDS if kind.name == manifest["kind"])
        name, labels = manifest["metadata"]["name"], manifest["metadata"]["labels"]
        try:
            self._call(
                f"create {kind.name} {name}", lambda: self._client.create(_TYPES[kind].from_dict(dict(manifest)))
            )
        except _Answered as answer:
            if answer.code != _CONFLICT:
                raise KubernetesRefused(str(answer), answer.code in (400, 422)) from answer
            if not any((seen.job_id, str(seen.generation)) == (labels[JOB], labels[GENERATION]) for seen in self.all()):
                raise KubernetesRefused(
                    f"{kind.name} {name} is there, and is not of this job: remove it", is_invalid=True
                ) from answer

    def patch(self, seen: Observed, change: dict[str, Any]) -> None:
        self._change(
            f"change {seen.kind.name} {seen.name}",
            lambda: self._client.patch(
                _TYPES[seen.kind], seen.name, change, namespace=self._namespace, patch_type=PatchType.MERGE
            ),
        )

    def delete(self, seen: Observed) -> None:
        self._change(
            f"delete {seen.kind.name} {seen.name}",
            lambda: self._client.delete(
                _TYPES[seen.kind], seen.name, namespace=self._namespace, cascade=CascadeType.FOREGROUND
            ),
        )

    def _of_kind(self, kind: ResourceKind) -> Sequence[Observed]:
        def listed() -> list[GenericNamespacedResource]:
            return list(self._client.list(_TYPES[kind], namespace=self._namespace, labels={JOB: None}))

        try:
            found = self._call(f"list {kind.plural} in {self._namespace}", listed)
        except _Answered as answer:
            raise KubernetesAway(str(answer)) from answer
        seen = [Observed.of({"kind": kind.name, **resource}) for resource in found]
        return [one for one in seen if one is not None]

    def _change(self, what: str, call: Callable[[], object]) -> None:
        try:
            self._call(what, call)
        except _Answered as answer:
            if answer.code != _NOT_FOUND:  # the next look shows that it is gone
                raise KubernetesAway(str(answer)) from answer

    def _call(self, what: str, call: Callable[[], Result]) -> Result:
        try:
            return call()
        except ApiError as error:
            code = error.status.code or 0
            if code == _TOO_MANY or code >= _FAULT:
                raise KubernetesAway(f"{what}: {code}: {error}") from error
            raise _Answered(f"{what}: {code}: {error}", code) from error
        except (httpx2.HTTPError, msgspec.MsgspecError, OSError, KeyError, TypeError, ValueError) as error:
            raise KubernetesAway(f"{what}: {error or type(error).__name__}") from error


class _Answered(Exception):
    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code
