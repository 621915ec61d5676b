import Glibc
import NetOptStorm

let usage = """
  Usage: netopt-storm trial [--answers N]

  trial: two hosts share an address and port, one of them speaks HTTP/1.1 only. Sends requests until there are N answers
  (default: 10000), and counts those that belong to another request.
  Exit codes: 0 nothing is wrong; 1 there are violations; 64 usage.
  """

func complain(_ text: String) -> Never {
  _ = write(STDERR_FILENO, text + "\n", text.utf8.count + 1)
  exit(64)
}

var arguments = CommandLine.arguments.dropFirst()
guard arguments.popFirst() == "trial" else { complain(usage) }
var answers = 10_000
while let argument = arguments.popFirst() {
  guard argument == "--answers", let number = arguments.popFirst().flatMap({ Int($0) }), number > 0 else {
    complain(usage)
  }
  answers = number
}
let address = try await SharedAddress()
let result = try await SharedAddressTrial(at: address).run(answers: answers)
address.stop()
for example in result.examples { print(example) }
let failed = result.failed.sorted { $0.key < $1.key }.map { "\($1) failed with \($0)" }
print((["\(result.answers) answers", "\(result.wrong) wrong"] + failed).joined(separator: ", "))
exit(result.wrong == 0 && failed.isEmpty ? 0 : 1)
