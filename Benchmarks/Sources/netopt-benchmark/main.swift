import Glibc
import NetOpt

let usage = """
  Usage: netopt-benchmark requests --url URL [--cacert FILE] [--connect-to HOST:PORT:IP:PORT | --list FILE]
                                   [--probes yes|no] [-n REQUESTS] [-c STREAMS] [--executor loop|pool] [--cold yes|no]
                                   [--expect echo:BYTES|words:BYTES] [--tags N]
                                   [--observe events|records|field|unsampled]
         netopt-benchmark hosts    --port PORT --address IP [--cacert FILE] [--hosts N] [--addresses N] [--used N]
                                   [-n REQUESTS] [-c STREAMS] [--expect …]
         netopt-benchmark waiting  --url URL [--cacert FILE] [--connect-to …] [-n REQUESTS] [--rounds N]
         netopt-benchmark soak     --url URL [--cacert FILE] [--connect-to …] [-n REQUESTS] [-c STREAMS]
                                   [--expect …]
         netopt-benchmark planning [--endpoints N] [-n PLANS] [--only unchanged|changed]
         netopt-benchmark list     [--endpoints N] [-n TIMES]
         netopt-benchmark signing  [-n TIMES] [--rounds N] [--body BYTES] [--scheme NAME] [--only sign|verify]
         netopt-benchmark cached   [-n REQUESTS] [--rounds N] [--body BYTES]

  Measures netopt and prints one line of JSON with what it cost.
  """

func complain(_ text: String) { _ = write(STDERR_FILENO, text, text.utf8.count) }

func run(_ name: String?, _ arguments: [String]) async throws -> String {
  switch name {
  case "requests": try await RequestsBenchmark.run(Options(arguments, known: RequestsBenchmark.options))
  case "hosts": try await HostsBenchmark.run(Options(arguments, known: HostsBenchmark.options))
  case "waiting": try await WaitingBenchmark.run(Options(arguments, known: WaitingBenchmark.options))
  case "soak": try await SoakBenchmark.run(Options(arguments, known: SoakBenchmark.options))
  case "planning": try PlanningBenchmark.run(Options(arguments, known: PlanningBenchmark.options))
  case "signing": try SigningBenchmark.run(Options(arguments, known: SigningBenchmark.options))
  case "list": try ListBenchmark.run(Options(arguments, known: ListBenchmark.options))
  case "cached": try await CachedBenchmark.run(Options(arguments, known: CachedBenchmark.options))
  default: throw UsageError("say what to measure")
  }
}

do {
  print(try await run(CommandLine.arguments.dropFirst().first, Array(CommandLine.arguments.dropFirst(2))))
} catch let error as UsageError {
  complain("netopt-benchmark: \(error.message)\n\(usage)\n")
  exit(64)
} catch {
  complain("netopt-benchmark: \(error)\n")
  exit(1)
}
