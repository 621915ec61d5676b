package import FoundationEssentials

/// The circumstances of a run: the program, the machine, the command line and the start time.
package struct RunContext: Sendable {
  /// The machine's operating system, and the libraries that netopt uses.
  package struct Host: Hashable, Sendable {
    /// The name and version of the operating system.
    package var os: String
    /// The version of libcurl; `nil` when the library is absent.
    package var libcurl: String?
    /// The name and version of the TLS library; `nil` when the library is absent.
    package var tls: String?
    /// The version of c-ares; `nil` when the library is absent.
    package var cares: String?

    /// Describes a machine.
    package init(os: String, libcurl: String? = nil, tls: String? = nil, cares: String? = nil) {
      self.os = os
      self.libcurl = libcurl
      self.tls = tls
      self.cares = cares
    }
  }

  /// The name of the run: the date in UTC and four hexadecimal digits, such as `20260131-0a1b`. The digits
  /// distinguish runs of the same day.
  package let runID: String
  /// The start time of the run.
  package let startedAt: Date
  /// The version of netopt.
  package let version: String
  /// The arguments of the command line, without the program's name and without secrets.
  package let arguments: [String]
  /// The machine and the libraries.
  package let host: Host

  /// Makes a context.
  ///
  /// - Parameter tag: the number that becomes the four hexadecimal digits of `runID`.
  package init(startedAt: Date, tag: UInt16, version: String, arguments: [String], host: Host) {
    let day = startedAt.formatted(Date.ISO8601FormatStyle().year().month().day().dateSeparator(.omitted))
    let digits = String(tag, radix: 16)
    runID = "\(day)-" + String(repeating: "0", count: 4 - digits.count) + digits
    self.startedAt = startedAt
    self.version = version
    self.arguments = arguments
    self.host = host
  }
}
