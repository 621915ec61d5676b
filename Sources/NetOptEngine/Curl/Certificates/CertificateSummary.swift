import CCurl
import NetOptCore

/// The subject and the expiry date of a server's certificate.
struct CertificateSummary {
  /// The subject in OpenSSL's form (`CN = example.com`), without control characters and cut after 500
  /// characters.
  private let subject: String?
  /// When the certificate expires, in seconds since 1970-01-01 UTC.
  private let notAfter: Int64?

  /// - Parameter transfer: a transfer that opened its connection.
  init(of transfer: Transfer) {
    subject = CertificateLine.subject.value(of: transfer).map {
      String($0.unicodeScalars.filter { $0.value >= 0x20 }.prefix(500))
    }
    notAfter = CertificateLine.expiry.value(of: transfer).flatMap(Self.date)
  }

  /// Returns a copy of a report with the subject and the expiry date.
  func added(to report: TLSReport) -> TLSReport {
    var report = report
    report.subject = subject
    report.notAfter = notAfter
    return report
  }

  /// Parses a date in OpenSSL's form (ASN1_TIME_print(3)), such as `Nov 21 19:00:00 2026 GMT`. Returns the
  /// seconds since 1970; `nil` for another form.
  static func date(_ text: String) -> Int64? {
    guard text.hasSuffix(" GMT") else { return nil }
    // With a day of the week in front, the text has the form of asctime(3), which `CivilTime` reads. Any word
    // serves as the day.
    return CivilTime(http: "Day \(text.dropLast(4))")?.seconds
  }
}

extension SocketReport {
  /// Asks the kernel about a TCP connection (TCP_INFO); `nil` if the kernel does not answer.
  init?(of descriptor: Int32) {
    var (roundTrip, retransmits): (UInt32, UInt32) = (0, 0)
    guard netopt_tcp_info(descriptor, &roundTrip, &retransmits) == 1 else { return nil }
    self.init(roundTrip: .microseconds(Int64(roundTrip)), retransmits: Int(retransmits))
  }
}
