import Testing

@testable import NetOptEngine

/// The names of a certificate that an error message shows.
@Suite struct CertificateNamesTests {
  @Test("alternative names, at most eight, replace the common name")
  func order() {
    let subject = "O = netopt, CN = a.test, C = X"
    #expect(CertificateNames.names(alternatives: nil, subject: subject) == ["a.test"])
    #expect(
      CertificateNames.names(alternatives: "DNS:b.test, IP Address:127.0.0.1", subject: subject) == [
        "b.test", "127.0.0.1",
      ])
    let many = (0..<20).map { "DNS:\($0).test" }.joined(separator: ", ")
    #expect(CertificateNames.names(alternatives: many, subject: subject) == (0..<8).map { "\($0).test" })
    #expect(CertificateNames.names(alternatives: nil, subject: nil) == [])
  }

  @Test("names show only their ASCII characters, even with 400,000 combining marks")
  func combiningMarks() {
    let marks = String(repeating: "\u{301}\u{316}", count: 200_000)
    #expect(CertificateNames.names(alternatives: "DNS:a\(marks)b, DNS:c", subject: nil) == ["ab", "c"])
    #expect(
      CertificateNames.names(alternatives: nil, subject: "O = \(marks), CN = a\(marks), C = X") == ["a"])
  }
}
