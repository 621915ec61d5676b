"""Another commit of this repository, checked out below the benchmarks' build directory and built there once."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

from origin import Failure, program
from programs import BENCHMARK, BENCHMARKS, HERE, Tree

AGAINST = os.path.join(BENCHMARKS, ".build", "against")
# Which of this tree's files build a program in the other tree as well: the load generators do part of the work that is measured, so
# that both trees have the same ones.
PRODUCTS = {
    "netopt-benchmark": ["Benchmarks/Sources/netopt-benchmark"],
    "cache-benchmark": ["Benchmarks/Sources/cache-benchmark"],
    "netopt": [],
}
# What types and modules were called in older commits, longest names first: this tree's programs are tried there with these.
FORMER_NAMES = {
    "NetOptRequest.Method": "HTTPMethod", "NetOptRequest": "HTTPRequest", "NetOptResponse": "HTTPResponse",
    "HeaderFields": "HTTPFields", "HeaderField": "HTTPField", "IPEndpoint": "Endpoint",
    "VerificationReport.Reason": "Reason", "SignerMistake": "Mutation", "import NetOptSigning\n": "",
    "import CHeap": "import CMalloc", ", heap: SystemHeap()": "", "import NetOptCommands\n": "",
}


def git(*arguments: str) -> bytes:
    done = subprocess.run([program("git"), "-C", HERE.root, *arguments], stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != 0:
        raise Failure(f"git {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def files_of(root: str, paths: list[str]) -> list[str]:
    """The files of some paths, relative to the root."""
    found = []
    for path in paths:
        whole = os.path.join(root, path)
        if os.path.isfile(whole):
            found.append(path)
        for folder, _, names in os.walk(whole):
            found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return sorted(found)


class Other:
    """A commit as a tree with programs."""

    def __init__(self, name: str) -> None:
        self.commit = git("rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}").decode().strip()
        self.tree = Tree(os.path.join(AGAINST, self.commit))
        self.record = self.tree.root + ".json"
        self.log = self.tree.root + ".log"
        if not os.path.isdir(self.tree.root):
            self.check_out()

    def check_out(self) -> None:
        os.makedirs(AGAINST, exist_ok=True)
        # Renamed when it is whole, so that what an interruption leaves behind is not taken for a tree.
        draft = tempfile.mkdtemp(prefix="draft.", dir=AGAINST)
        try:
            self.extract(draft)
            os.rename(draft, self.tree.root)
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def extract(self, target: str, *paths: str) -> None:
        subprocess.run(
            [program("tar"), "-x", "-C", target], input=git("archive", "--format=tar", self.commit, *paths), check=True)

    def build(self, names: set[str]) -> list[str]:
        """Builds programs, unless they are there.

        Returns what has to be said of them."""
        records = self.records()
        notes = []
        for name in sorted(names):
            harness = PRODUCTS[name]
            options = ["--package-path", "Benchmarks"] if name == BENCHMARK and not self.tree.has_benchmark else []
            files = files_of(HERE.root, harness)
            digest = hashlib.sha256()
            for file in files:
                with open(os.path.join(HERE.root, file), "rb") as source:
                    digest.update(file.encode() + b"\0" + source.read())
            wanted = digest.hexdigest()
            if records.get(name, {}).get("harness") != wanted:
                print(f"perf: building {name} of {self.commit[:12]}; the log is {self.log}", file=sys.stderr, flush=True)
                for path in harness:
                    self.overlay(path)
                is_own = not self.compile(name, options)
                if is_own and harness:
                    for path in harness:
                        self.use_former_names(path)
                    is_own = not self.compile(name, options)
                if is_own:
                    for path in harness:
                        self.restore(path)
                    if not harness or not self.compile(name, options):
                        raise Failure(f"{name} of {self.commit[:12]} cannot be built; see {self.log}")
                records[name] = {"harness": wanted, "own": is_own}
                with open(self.record, "w", encoding="utf-8") as file:
                    json.dump(records, file, indent=2)
            if records[name]["own"]:
                notes.append(
                    f"{name} of the other tree is its own, since this tree's does not build there: what the two do beside the "
                    "requests may differ, and is part of the ratios")
        return notes

    def records(self) -> dict:
        try:
            with open(self.record, encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError):
            return {}

    def overlay(self, path: str) -> None:
        self.remove(path)
        source, target = os.path.join(HERE.root, path), os.path.join(self.tree.root, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.isdir(source):
            shutil.copytree(source, target)
        else:
            shutil.copyfile(source, target)

    def use_former_names(self, path: str) -> None:
        for file in files_of(self.tree.root, [path]):
            if not file.endswith(".swift"):
                continue
            with open(os.path.join(self.tree.root, file), encoding="utf-8") as source:
                text = source.read()
            for name, former in FORMER_NAMES.items():
                text = text.replace(name, former)
            with open(os.path.join(self.tree.root, file), "w", encoding="utf-8") as target:
                target.write(text)

    def restore(self, path: str) -> None:
        self.remove(path)
        self.extract(self.tree.root, path)

    def remove(self, path: str) -> None:
        whole = os.path.join(self.tree.root, path)
        if os.path.isdir(whole):
            shutil.rmtree(whole)
        elif os.path.exists(whole):
            os.unlink(whole)

    def compile(self, name: str, options: list[str]) -> bool:
        command = [os.environ.get("SWIFT") or "swift", "build", "-c", "release", *options, "--product", name, "--static-swift-stdlib"]
        with open(self.log, "ab") as log:
            return subprocess.run(
                command, cwd=self.tree.root, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT).returncode == 0
