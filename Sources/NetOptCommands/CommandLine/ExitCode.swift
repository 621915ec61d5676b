import Glibc
import NetOptCore

/// An exit code of the process. The codes have the same meaning for every command.
package struct ExitCode: Hashable, Sendable {
  /// The exit status of the process, from 0 to 255.
  package let number: Int32

  /// Success.
  static let ok = ExitCode(number: 0)
  /// The command failed: for example, a request got no response, or a check found a fault.
  static let failed = ExitCode(number: 1)
  /// Some targets failed (`bench --strict`).
  static let someTargetsFailed = ExitCode(number: 3)
  /// A target missed an objective (`bench --slo`).
  static let objectiveMissed = ExitCode(number: 4)
  /// A target became significantly slower, failed significantly more often, was excluded, or no longer has a
  /// median (`compare`).
  static let regression = ExitCode(number: 5)
  /// The command line is invalid (`EX_USAGE` of sysexits.h).
  static let usage = ExitCode(number: 64)
  /// An input file cannot be read or is invalid (`EX_DATAERR`).
  static let invalidInput = ExitCode(number: 65)

  /// The process ended because of a signal. By the convention of shells, the code is 128 plus the number of
  /// the signal: 130 for SIGINT, 143 for SIGTERM, 141 for SIGPIPE.
  static func signal(_ number: Int32) -> ExitCode { ExitCode(number: 128 + number) }

  /// Creates the exit code for an error.
  init(_ error: NetOptError) {
    switch error.code {
    // In the phase `receive`, the invalid URL is from a redirect and not from the command line.
    case .invalidURL where error.phase == .receive: self = .failed
    case .invalidURL, .invalidRequest, .invalidConfiguration: self = .usage
    case .invalidList, .invalidSignature, .invalidKey, .invalidKeys, .unreadableFile: self = .invalidInput
    default: self = .failed
    }
  }

  /// Creates the exit code for a failure to write output. If the reader has closed the output, it is the code
  /// of SIGPIPE (141), which ends other programs in this case; else it is `failed`.
  init(_ error: OutputError) { self = error.kind == .closed ? .signal(SIGPIPE) : .failed }

  private init(number: Int32) { self.number = number }
}
