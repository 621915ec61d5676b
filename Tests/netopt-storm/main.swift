import Glibc
import NetOptStorm

let usage = """
  Usage: netopt-storm [--seconds N] [--seed S]
         netopt-storm trial [--answers N]

  Loads clients for N seconds (default: 60) with requests that follow from the seed (default: 1), at servers that share
  addresses and fail, and checks every answer. As root it runs in a network of its own, which changes.
  trial: two hosts share an address and port, one of them speaks HTTP/1.1 only. Sends requests until there are N answers
  (default: 10000), and counts those that belong to another request.
  Exit codes: 0 nothing is wrong; 1 there are violations; 2 the servers could not be started; 64 usage.
  """

/// Prints an error message and ends the process. `code` is its exit code; 64 means a wrong command line.
func complain(_ text: String, code: Int32 = 64) -> Never {
  _ = write(STDERR_FILENO, text + "\n", text.utf8.count + 1)
  exit(code)
}

/// Prints a line at once, without a buffer, so that no line is lost if the program is killed.
@Sendable func say(_ text: String) { _ = write(STDOUT_FILENO, text + "\n", text.utf8.count + 1) }

/// Runs the trial with two hosts that share an address (`SharedAddressTrial`), and prints its result. Returns
/// whether all responses were right and no request failed.
func performTrial(answers: Int) async throws -> Bool {
  let address = try await SharedAddress()
  let result = try await SharedAddressTrial(at: address).run(answers: answers)
  address.stop()
  for example in result.examples { say(example) }
  let failed = result.failed.sorted { $0.key < $1.key }.map { "\($1) failed with \($0)" }
  say((["\(result.answers) answers", "\(result.wrong) wrong"] + failed).joined(separator: ", "))
  return result.wrong == 0 && failed.isEmpty
}

/// Runs a storm and prints its report. Returns whether there were no violations.
func performStorm(seed: UInt64, seconds: Int) async throws -> Bool {
  let hasOwnNetwork = await Storm.prepareProcess()
  let violations = Violations { say("VIOLATION \($0)") }
  let report = try await Storm.run(
    seed: seed, seconds: seconds, hasOwnNetwork: hasOwnNetwork, violations)
  say(report.description)
  return report.violations.isEmpty
}

var arguments = CommandLine.arguments.dropFirst()
let isTrial = arguments.first == "trial"
if isTrial { arguments.removeFirst() }
/// The values of the options, which all take a number. Begins with the defaults.
var numbers = ["--answers": 10_000, "--seconds": 60, "--seed": 1]
while let argument = arguments.popFirst() {
  if argument == "--help" {
    say(usage)
    exit(0)
  }
  guard numbers[argument] != nil, (argument == "--answers") == isTrial,
    let number = arguments.popFirst().flatMap({ Int($0) }), number > 0
  else { complain(usage) }
  numbers[argument] = number
}
do {
  let isRight =
    isTrial
    ? try await performTrial(answers: numbers["--answers", default: 0])
    : try await performStorm(
      seed: UInt64(numbers["--seed", default: 0]), seconds: numbers["--seconds", default: 0])
  exit(isRight ? 0 : 1)
} catch {
  complain("netopt-storm: \(error)", code: 2)
}
