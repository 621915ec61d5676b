import Glibc
import NetOptRouting
import NetOptSimulation

// Runs the routing policy in simulated networks: `netopt-simulate [--seeds N] [--from SEED] [--mutation NAME] [--trace]`.
let usage = """
  Usage: netopt-simulate [--seeds N] [--from SEED] [--mutation NAME] [--trace]
         netopt-simulate --mutants

  Runs the routing policy in N simulated networks that follow from the seeds beginning with SEED (default: 5000 from 1),
  and a fleet of 1000 clients for every hundredth. A broken rule is printed with its seed and what happened before it.
  --trace prints all that happens. --mutants makes the policy wrong in every known way and looks whether a rule
  breaks. Exit codes: 0 every rule holds; 1 one is broken; 64 usage.
  """

func complain(_ text: String) -> Never {
  _ = write(STDERR_FILENO, text + "\n", text.utf8.count + 1)
  exit(64)
}

var count: UInt64 = 5000
var first: UInt64 = 1
var mutation: PlannerMutation?
var isTraced = false
var triesMutants = false
var arguments = CommandLine.arguments.dropFirst()
while let argument = arguments.popFirst() {
  switch argument {
  case "--help": print(usage); exit(0)
  case "--trace": isTraced = true
  case "--mutants": triesMutants = true
  case "--seeds", "--from":
    guard let text = arguments.popFirst(), let number = UInt64(text), number < 1 << 40 else {
      complain("netopt-simulate: \(argument) takes a number\n\(usage)")
    }
    if argument == "--seeds" { count = number } else { first = number }
  case "--mutation":
    let name = arguments.popFirst() ?? ""
    mutation = PlannerMutation(rawValue: name)
    if mutation == nil {
      let known = PlannerMutation.allCases.map(\.rawValue).joined(separator: ", ")
      complain("netopt-simulate: there is no mutation \"\(name)\"; there are: \(known)")
    }
  default: complain("netopt-simulate: what is \"\(argument)\"?\n\(usage)")
  }
}

let start = ContinuousClock.now
if triesMutants {
  var survivors = 0
  for mutation in PlannerMutation.allCases {
    let found = SimulationSeries.firstFault(of: mutation, in: 1..<5001)
    if found == nil { survivors += 1 }
    print("\(mutation.rawValue): " + (found.map { "seed \($0.seed): \($0.fault)" } ?? "BREAKS NO RULE"))
  }
  exit(survivors == 0 ? 0 : 1)
}
let result = SimulationSeries.run(first..<(first + count), mutation: mutation) { print($0) }
if isTraced {
  let simulation = Simulation(seed: first, mutation: mutation, isTraced: true)
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
