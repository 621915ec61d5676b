package import FoundationEssentials

/// What a report says of the program that made it, the machine, and the moment.
package struct RunContext: Sendable {
  /// The machine and the libraries.
  package struct Host: Hashable, Sendable {
    /// The system.
    package var os: String
    /// The versions of the libraries; `nil` for one that is not there.
    package var libcurl: String?
    /// The TLS library, with its name.
    package var tls: String?
    /// c-ares.
    package var cares: String?

    /// Describes a machine.
    package init(os: String, libcurl: String? = nil, tls: String? = nil, cares: String? = nil) {
      self.os = os
      self.libcurl = libcurl
      self.tls = tls
      self.cares = cares
    }
  }

  /// The name of the run: the day, and four digits that tell the runs of a day apart.
  package let runID: String
  /// When it began.
  package let startedAt: Date
  /// The version of netopt.
  package let version: String
  /// The command line, without secrets.
  package let arguments: [String]
  /// Where it ran.
  package let host: Host

  /// Makes a context.
  ///
  /// - Parameter tag: a number that the run's name takes its four digits from.
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
