import Glibc
import NetOptCore

/// What the process says about itself when it ends. The same for every command.
package struct ExitCode: Hashable, Sendable {
  /// The number that the shell sees.
  package let number: Int32

  /// Fine.
  static let ok = ExitCode(number: 0)
  /// The request, or what else was asked for, failed.
  static let failed = ExitCode(number: 1)
  /// Some targets failed (`bench --strict`).
  static let someTargetsFailed = ExitCode(number: 3)
  /// A target misses what was asked of it (`bench --slo`).
  static let objectiveMissed = ExitCode(number: 4)
  /// A target became slower, and that is no chance (`compare`).
  static let regression = ExitCode(number: 5)
  /// The command line makes no sense (`EX_USAGE` of sysexits.h).
  static let usage = ExitCode(number: 64)
  /// An input file cannot be read or is invalid (`EX_DATAERR`).
  static let invalidInput = ExitCode(number: 65)

  /// A signal ended the process: 130 for SIGINT, 143 for SIGTERM, 141 for SIGPIPE, as shells count them.
  static func signal(_ number: Int32) -> ExitCode { ExitCode(number: 128 + number) }

  /// The exit code that an error asks for.
  init(_ error: NetOptError) {
    switch error.code {
    // What a redirect leads to.
    case .invalidURL where error.phase == .receive: self = .failed
    case .invalidURL, .invalidRequest, .invalidConfiguration: self = .usage
    case .invalidList, .invalidSignature, .invalidKey, .invalidKeys, .unreadableFile: self = .invalidInput
    default: self = .failed
    }
  }

  /// The exit code for output that did not get where it should.
  init(_ error: OutputError) { self = error.kind == .closed ? .signal(SIGPIPE) : .failed }

  private init(number: Int32) { self.number = number }
}
