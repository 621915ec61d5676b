import Glibc
import NetOptSimulation

// Runs the routing policy in simulated networks, one for each seed (docs/simulation.md).
let usage = """
  Usage: netopt-simulate [--seeds N] [--from SEED] [--only KIND] [--first] [--trace]

  Runs the routing policy in N simulated networks that follow from the seeds beginning with SEED (default: 5000 from 1),
  and a fleet of 1000 clients for every hundredth. For the first broken rule of each kind of network, it prints
  the seed and what happened before. At the end it lists up to 100 seeds that broke a rule.
  --only KIND runs the seeds whose network is of a kind; with the kind fleet, it runs a fleet for each seed and no
  networks. Kinds: \(SimulationSeries.Selection.names.joined(separator: ", ")).
  --first ends with the first broken rule. --trace prints all that happens with the first seed.
  Exit codes: 0 every rule holds; 1 one is broken; 64 usage.
  """

/// Prints an error message and ends the process with the exit code for a wrong command line.
func complain(_ text: String) -> Never {
  _ = write(STDERR_FILENO, text + "\n", text.utf8.count + 1)
  exit(64)
}

/// The number of seeds (`--seeds`).
var count: UInt64 = 5000
/// The first seed (`--from`).
var first: UInt64 = 1
/// What runs for the seeds: networks of all kinds and fleets, one kind, or only fleets (`--only`).
var selection = SimulationSeries.Selection.all
/// Whether to print all events of the first seed's network (`--trace`).
var isTraced = false
/// Whether to end at the first broken rule (`--first`).
var stopsAtFirst = false
var arguments = CommandLine.arguments.dropFirst()
while let argument = arguments.popFirst() {
  switch argument {
  case "--help": print(usage); exit(0)
  case "--trace": isTraced = true
  case "--first": stopsAtFirst = true
  case "--seeds", "--from":
    guard let text = arguments.popFirst(), let number = UInt64(text), number < 1 << 40 else {
      complain("netopt-simulate: \(argument) takes a number\n\(usage)")
    }
    if argument == "--seeds" { count = number } else { first = number }
  case "--only":
    let name = arguments.popFirst() ?? ""
    guard let named = SimulationSeries.Selection(named: name) else {
      complain("netopt-simulate: there is no kind \"\(name)\"\n\(usage)")
    }
    selection = named
  default: complain("netopt-simulate: what is \"\(argument)\"?\n\(usage)")
  }
}

let start = ContinuousClock.now
let result = SimulationSeries.run(first..<(first + count), selection, stopsAtFirst: stopsAtFirst) {
  print($0)
}
if isTraced {
  let simulation = Simulation(seed: first, isTraced: true)
  simulation.run()
  for line in simulation.trace ?? [] { print(line) }
}
let seconds = (ContinuousClock.now - start) / .seconds(1)
print(
  "\(count) seeds, \(result.requests) requests, \(result.probes) probes, \(result.broken.count) seeds with a broken rule, "
    + "\(Int(seconds * 1000)) ms, \(Int(Double(count) / max(seconds, 0.001))) seeds/s")
if !result.broken.isEmpty {
  print("a rule is broken by: " + result.broken.prefix(100).map(String.init).joined(separator: " "))
}
exit(result.broken.isEmpty ? 0 : 1)
