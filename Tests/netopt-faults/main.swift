import FaultMatrix
import FoundationEssentials
import Glibc

let usage = """
  Usage: netopt-faults [--sample N] [--only WORDS] [--short] [--write FILE] [--list]

  Runs the cells of the fault matrix, each with netopt and then with curl(1), and prints the table. As root it runs in a network of
  its own; otherwise cells that take one are left out.
  --sample N    N cells that have every fault among them, in the place of all
  --only WORDS  the cells whose names contain all of the words, which are separated by commas
  --short       a fault lasts as long as a request that meets it, and nobody waits for the server to be used again
  --write FILE  write the table between its marks in this file, after each cell
  --list        print the names of the cells, and run none
  Exit codes: 0 nothing is wrong; 1 there are violations; 2 a cell could not be run; 64 usage.
  """

func complain(_ text: String, code: Int32 = 64) -> Never {
  _ = write(STDERR_FILENO, text + "\n", text.utf8.count + 1)
  exit(code)
}

/// Prints a line at once, so that it is there even when the program is killed.
@Sendable func say(_ text: String) { _ = write(STDOUT_FILENO, text + "\n", text.utf8.count + 1) }

var arguments = CommandLine.arguments.dropFirst()
var values: [String: String] = [:]
var flags: Set<String> = []
while let argument = arguments.popFirst() {
  switch argument {
  case "--help":
    say(usage)
    exit(0)
  case "--short", "--list": flags.insert(argument)
  case "--sample", "--only", "--write":
    guard let value = arguments.popFirst() else { complain(usage) }
    values[argument] = value
  default: complain(usage)
  }
}

let hasOwnNetwork = await MatrixRun.enterNetwork()
let faults = Fault.all.filter { hasOwnNetwork || !$0.needsOwnNetwork }
var cells: [Cell]
if let sample = values["--sample"] {
  guard let count = Int(sample), count > 0 else { complain(usage) }
  cells = Cell.sample(count, of: faults)
} else {
  cells = Cell.all(of: faults)
}
if let only = values["--only"] {
  let words = only.split(separator: ",").map { String($0) }
  cells = cells.filter { cell in words.allSatisfy { cell.description.contains($0) } }
  guard !cells.isEmpty else { complain("netopt-faults: the name of no cell contains \(only)") }
}
if flags.contains("--list") {
  for cell in cells { say(cell.description) }
  exit(0)
}
do {
  var record = MatrixRecord(file: values["--write"])
  if !hasOwnNetwork {
    say("No network of its own, which takes root: cells with a wire or without a route are left out.")
  }
  say(VerdictTable.head)
  try await MatrixRun.run(cells, isShort: flags.contains("--short")) { cell, verdict in
    say(VerdictTable.row(cell, verdict))
    for line in record.add(cell, verdict) { say(line) }
    try record.write()
  }
  say(record.summary)
  exit(record.violated == 0 ? 0 : 1)
} catch {
  complain("netopt-faults: \(error)", code: 2)
}
