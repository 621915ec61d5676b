import NetOptCore
import Testing

/// The groups of error codes.
@Suite struct ErrorGroupsTests {
  private static let certificates: [NetOptError.Code] = [
    .certificateName, .certificateUntrusted, .certificateExpired, .certificatePin,
  ]
  private static let connections: [NetOptError.Code] = [
    .nameNotFound, .resolverFailed, .connectFailed, .proxyFailed, .tlsFailed, .sendFailed, .receiveFailed,
  ]
  private static let others: [NetOptError.Code] = [
    .invalidURL, .invalidRequest, .invalidConfiguration, .cancelled, .timeout, .shutDown, .noAuthorities,
    .protocolViolation, .decodeFailed, .bodyTooLarge, .unexpectedStatus, .custom("connect-failed-again"),
  ]

  @Test("a code is in one group at most")
  func groups() {
    for code in Self.certificates { #expect(code.isCertificate && !code.isConnection, "\(code)") }
    for code in Self.connections { #expect(!code.isCertificate && code.isConnection, "\(code)") }
    for code in Self.others { #expect(!code.isCertificate && !code.isConnection, "\(code)") }
  }
}
