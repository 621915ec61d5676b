import Glibc
import NetOpt

let usage = """
  Usage: netopt-benchmark requests --url URL [--cacert FILE] [--connect-to HOST:PORT:IP:PORT]
                                   [-n REQUESTS] [-c STREAMS] [--executor loop|pool]

  Performs requests and prints one line of JSON with what they cost.
  """

func complain(_ text: String) { _ = write(STDERR_FILENO, text, text.utf8.count) }

do {
  var arguments = Array(CommandLine.arguments.dropFirst())
  guard arguments.first == "requests" else { throw UsageError("say what to measure: requests") }
  arguments.removeFirst()
  print(try await RequestsBenchmark(arguments).run())
} catch let error as UsageError {
  complain("netopt-benchmark: \(error.message)\n\(usage)\n")
  exit(64)
} catch {
  complain("netopt-benchmark: \(error)\n")
  exit(1)
}
