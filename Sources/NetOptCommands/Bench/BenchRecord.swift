import FoundationEssentials
import Glibc
import NetOpt
import NetOptBench
import NetOptCore

extension RunContext {
  /// Creates the description of a run that starts now on this machine, for reports.
  init(_ arguments: Arguments, in context: CommandContext) {
    let libraries = NetOptVersion.libraries
    func version(_ name: String) -> String? { libraries.first { $0.name == name }?.version }
    self.init(
      startedAt: context.now(), tag: .random(in: .min ... .max), version: NetOptVersion.string,
      arguments: ["bench"] + arguments.recorded,
      host: Host(
        os: Self.system, libcurl: version("libcurl"), tls: version("TLS"), cares: version("c-ares")))
  }

  /// The processor time that all threads of this process have used so far (clock_gettime(2),
  /// `CLOCK_PROCESS_CPUTIME_ID`).
  static func cpuTime() -> Duration {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return .nanoseconds(Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }

  /// The kernel's name, release and architecture: `Linux 6.1.0-18-amd64 x86_64`.
  private static var system: String {
    var names = utsname()
    guard uname(&names) == 0 else { return "Linux" }
    func text<Field>(_ field: Field) -> String {
      withUnsafeBytes(of: field) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
    return [text(names.sysname), text(names.release), text(names.machine)].joined(separator: " ")
  }
}

extension Arguments {
  /// The arguments in the form that a report stores. It contains no credentials, because users pass reports
  /// on: it omits request bodies, secrets in URLs, and the values of all header fields except `plainFields`.
  var recorded: [String] {
    given.map { given in
      guard let value = given.value else { return given.option.name }
      return "\(given.option.name)=\(Self.recorded(value, of: given.option))"
    } + operands.map(HTTPURL.shown)
  }

  /// The lowercase names of header fields whose values contain no credentials.
  private static let plainFields: Set<String> = [
    "accept", "accept-encoding", "accept-language", "cache-control", "content-type", "host", "range",
    "user-agent",
  ]

  /// Returns the value of an option in the form that a report stores.
  private static func recorded(_ value: String, of option: Option) -> String {
    switch option {
    case RequestArguments.data: return "..."
    case RequestArguments.header:
      let name = value.prefix { $0 != ":" && $0 != ";" }
      return plainFields.contains(name.lowercased()) ? value : "\(name): ..."
    default: return value.contains("://") ? HTTPURL.shown(given: value) : value
    }
  }
}
