import CCurl
import NetOptCore

/// Whose certificate a server presented, and until when it holds.
struct CertificateSummary {
  private let subject: String?
  private let notAfter: Int64?

  /// - Parameter transfer: one that opened its connection.
  init(of transfer: Transfer) {
    subject = CertificateLine.subject.value(of: transfer).map {
      String($0.unicodeScalars.filter { $0.value >= 0x20 }.prefix(500))
    }
    notAfter = CertificateLine.expiry.value(of: transfer).flatMap(Self.date)
  }

  /// A report with these.
  func added(to report: TLSReport) -> TLSReport {
    var report = report
    report.subject = subject
    report.notAfter = notAfter
    return report
  }

  /// The moment of a date of OpenSSL's (ASN1_TIME_print(3)), as `Nov 21 19:00:00 2026 GMT`, in seconds since 1970; `nil` for another form.
  static func date(_ text: String) -> Int64? {
    guard text.hasSuffix(" GMT") else { return nil }
    // With a day of the week it has the form of asctime(3). Which day that is does not matter.
    return CivilTime(http: "Day \(text.dropLast(4))")?.seconds
  }
}

extension SocketReport {
  /// Asks the kernel about a socket; `nil` when it does not tell.
  init?(of descriptor: Int32) {
    var (roundTrip, retransmits): (UInt32, UInt32) = (0, 0)
    guard netopt_tcp_info(descriptor, &roundTrip, &retransmits) == 1 else { return nil }
    self.init(roundTrip: .microseconds(Int64(roundTrip)), retransmits: Int(retransmits))
  }
}
