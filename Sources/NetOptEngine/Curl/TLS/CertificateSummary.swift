import CCurl
import NetOptCore

/// Whose certificate a server presented, and until when it holds.
struct CertificateSummary {
  private let subject: String?
  private let notAfter: String?

  /// - Parameter transfer: one that opened its connection.
  init(of transfer: Transfer) {
    subject = CertificateLine.subject.value(of: transfer).map {
      String($0.unicodeScalars.filter { $0.value >= 0x20 }.prefix(500))
    }
    notAfter = CertificateLine.expiry.value(of: transfer).flatMap { Self.date($0[...]) }
  }

  /// A report with these.
  func added(to report: TLSReport) -> TLSReport {
    var report = report
    report.subject = subject
    report.notAfter = notAfter
    return report
  }

  /// A date of OpenSSL's, as `Nov 21 19:00:00 2026 GMT`, in the form of RFC 3339; `nil` for another form.
  static func date(_ text: Substring) -> String? {
    let words = text.split(separator: " ")
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    guard words.count == 5, words[4] == "GMT", let month = months.firstIndex(of: String(words[0])),
      let day = Int(words[1]), words[2].count == 8, let year = Int(words[3])
    else { return nil }
    func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(year)-\(two(month + 1))-\(two(day))T\(words[2])Z"
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
