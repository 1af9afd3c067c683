"""`leeward dssp`: domains, providers and their registry as services, a query, and a whole testbed on this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from leeward.cli._common import refusing, until_told

EXIT_PARTIAL = 3

Callers = Annotated[Path, typer.Option(metavar="TOKENS.json", help="Tokens of those that may call: name -> token.")]
DomainPath = Annotated[Path, typer.Argument(metavar="DOMAIN.json", help="Capabilities, nodes, addresses.")]
ProviderPath = Annotated[Path, typer.Argument(metavar="PROVIDER.json", help="Addresses and files of tokens.")]


def register(app: typer.Typer) -> None:
    """Adds `dssp` and its sub-commands to the command line."""
    dssp = typer.Typer(help="Sensing queries over independent domains, within latency budgets.", no_args_is_help=True)
    dssp.command("registry")(registry)
    dssp.command("domain")(domain)
    dssp.command("provider")(provider)
    dssp.command("query")(query)
    dssp.command("up")(up)
    app.add_typer(dssp, name="dssp")


def registry(
    callers: Callers,
    host: Annotated[str, typer.Option(help="To serve at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="To serve at; 0: a free one.")] = 8100,
    certificate: Annotated[Path | None, typer.Option(help="For TLS, with --key.")] = None,
    key: Annotated[Path | None, typer.Option(help="Of the certificate.")] = None,
    lease: Annotated[float, typer.Option(min=1.0, help="Seconds until a silent organisation is left out.")] = 60.0,
) -> None:
    """Serve the registry, until stopped: domains and providers register, providers discover domains.

    Example: leeward dssp registry --callers tokens.json
    """
    from leeward.adapters.organisations.tokens import read_tokens
    from leeward.cli._dssp_registry import serve_registry

    with refusing():
        serve_registry(
            read_tokens(callers), host=host, port=port, certificate=certificate, key=key, lease_s=lease, stop=until_told
        )


def domain(file: DomainPath) -> None:
    """Serve a domain, until stopped: measure its nodes, register, keep budgets.

    Example: leeward dssp domain north.json
    """
    from leeward.adapters.organisations.tokens import read_tokens
    from leeward.cli._dssp_domain import serve_domain
    from leeward.policies.dssp.model.organisation_files import read_domain

    with refusing():
        about = read_domain(file)
        token = _token(about.tokens, "registry")
        serve_domain(about, callers=read_tokens(about.callers), token=token, stop=until_told)


def provider(file: ProviderPath) -> None:
    """Serve a service provider, until stopped: discover domains, negotiate, answer queries over HTTP.

    Example: leeward dssp provider city.json
    """
    from leeward.adapters.organisations.tokens import read_tokens
    from leeward.cli._dssp_provider import serve_provider
    from leeward.policies.dssp.model.organisation_files import read_provider

    with refusing():
        about = read_provider(file)
        _token(about.tokens, "registry")
        serve_provider(about, callers=read_tokens(about.callers), tokens=read_tokens(about.tokens), stop=until_told)


def query(
    url: Annotated[str, typer.Argument(help="Of the provider, such as http://127.0.0.1:8099.")],
    service: Annotated[str, typer.Argument(help="Name of a service that is open there.")],
    token: Annotated[Path, typer.Option(help="File with the token that the provider knows.")],
    area: Annotated[
        list[str] | None, typer.Option(metavar="W,S,E,N", help="In degrees; none: all of the service.")
    ] = None,
    authority: Annotated[Path | None, typer.Option(help="Certificate that signs the provider's.")] = None,
) -> None:
    """Ask a service once, and print the answer as JSON. Exit code 3: some domain or node is missing in it.

    Example: leeward dssp query http://127.0.0.1:8099 air --token token --area 0,0,9,9
    """
    import httpx

    from leeward.adapters.organisations.tls import client_tls
    from leeward.cli._dssp_registering import check_url, refusal
    from leeward.core.errors import LeewardError

    with refusing():
        check_url("URL", url)
        areas = [_area(text) for text in area or []]
        headers = {"Authorization": f"Bearer {token.read_text().strip()}"}
        try:
            answer = httpx.post(
                f"{url}/queries", json={"service": service, "areas": areas}, headers=headers, timeout=120.0,
                verify=client_tls(authority),
            )  # fmt: skip
        except httpx.HTTPError as error:
            raise LeewardError(f"{url}: {error}.", remedy="Start the provider, or name its address.") from None
        if answer.is_error:
            raise refusal(answer)
        found: dict[str, Any] = answer.json()
    typer.echo(json.dumps(found, indent=1))
    if found["missing"] or found["failed"]:
        raise typer.Exit(EXIT_PARTIAL)


def up(
    profile: Annotated[str, typer.Option(help="testbed: the paper's 4 domains with 8 nodes each.")] = "testbed",
    discipline: Annotated[str, typer.Option(help="Order of the nodes' queues.")] = "dssp-salvage",
    rate: Annotated[float, typer.Option(min=0.1, help="Queries/s of the load generator.")] = 15.0,
    seconds: Annotated[float, typer.Option(min=0.0, help="0: until stopped.")] = 0.0,
    port: Annotated[int, typer.Option(help="Of the page; the organisations take the ones after it.")] = 8090,
    seed: Annotated[int, typer.Option(help="Of arrivals, fan-outs and execution times.")] = 0,
    scaling: Annotated[bool, typer.Option(help="Give nodes more pods while subtasks start late.")] = False,
    tls: Annotated[bool, typer.Option(help="TLS between all of them, with certificates made for this run.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for files and logs.")] = Path("out/dssp"),
) -> None:
    """Start a registry, domains, a provider and a load generator on this machine, with a live page, until stopped.

    Example: leeward dssp up --profile testbed --rate 12
    """
    from leeward.cli._dssp_up import PROFILES, Load, run_up
    from leeward.core.errors import LeewardError

    with refusing():
        if profile not in PROFILES:
            raise LeewardError(f"--profile {profile}: it is unknown.", remedy=f"Choose one of {', '.join(PROFILES)}.")
        load = Load(setting=PROFILES[profile](), rate=rate, seconds=seconds, seed=seed)
        run_up(
            load, profile=profile, discipline=discipline, port=port, tls=tls, scaling=scaling, out=out, stop=until_told
        )


def _token(file: Path, name: str) -> str:
    from leeward.adapters.organisations.tokens import read_tokens
    from leeward.core.errors import LeewardError

    tokens = read_tokens(file)
    if name not in tokens:
        raise LeewardError(f"{file}: it has no token for {name!r}.", remedy="Add the one that it has given you.")
    return tokens[name]


def _area(text: str) -> list[float]:
    from leeward.core.errors import LeewardError
    from leeward.policies.dssp.model.area import Area

    try:
        west, south, east, north = map(float, text.split(","))
    except ValueError:
        raise LeewardError(f"--area {text}: these are not four numbers.", remedy="Write W,S,E,N in degrees.") from None
    return Area(west, south, east, north).to_json()
