import Glibc
import NetOptCore

/// An exit code of the process. The codes have the same meaning for every command.
package struct ExitCode: Hashable, Sendable {
  /// The number that the shell sees.
  package let number: Int32

  /// Success.
  static let ok = ExitCode(number: 0)
  /// The request, or the other task of the command, failed.
  static let failed = ExitCode(number: 1)
  /// Some targets failed (`bench --strict`).
  static let someTargetsFailed = ExitCode(number: 3)
  /// A target missed an objective (`bench --slo`).
  static let objectiveMissed = ExitCode(number: 4)
  /// A target became significantly slower, failed significantly more often, was left out, or lost its median
  /// (`compare`).
  static let regression = ExitCode(number: 5)
  /// The command line is invalid (`EX_USAGE` of sysexits.h).
  static let usage = ExitCode(number: 64)
  /// An input file cannot be read or is invalid (`EX_DATAERR`).
  static let invalidInput = ExitCode(number: 65)

  /// A signal ended the process: 130 for SIGINT, 143 for SIGTERM, 141 for SIGPIPE, by the convention of
  /// shells.
  static func signal(_ number: Int32) -> ExitCode { ExitCode(number: 128 + number) }

  /// Creates the exit code for an error.
  init(_ error: NetOptError) {
    switch error.code {
    // The invalid URL comes from a redirect, not from the command line.
    case .invalidURL where error.phase == .receive: self = .failed
    case .invalidURL, .invalidRequest, .invalidConfiguration: self = .usage
    case .invalidList, .invalidSignature, .invalidKey, .invalidKeys, .unreadableFile: self = .invalidInput
    default: self = .failed
    }
  }

  /// Creates the exit code for a failed output.
  init(_ error: OutputError) { self = error.kind == .closed ? .signal(SIGPIPE) : .failed }

  private init(number: Int32) { self.number = number }
}
