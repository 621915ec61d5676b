import NetOpt
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// Tests the messages of the errors for responses that are broken, incomplete or too large. A message must
/// name the fault.
@Suite struct MessageTests {
  /// A scenario of the hostile server, and the expected error.
  private struct Case: Sendable {
    /// The name of the scenario.
    let name: String
    /// The expected code of the error.
    let code: NetOptError.Code
    /// A part of the expected message.
    let words: String
    /// Whether the server ends or resets the connection or the stream. Only then may the message say that it
    /// ended.
    var ends = false
    /// How the request is sent.
    var access = Access.plain
  }

  /// HTTP/1.1 without TLS, HTTP/1.1 with TLS, or HTTP/2. The scenario decides between the last two.
  private enum Access { case plain, tls, http2 }

  /// Phrases that name no cause, so that no message may contain them.
  private static let vague = ["the exchange", "broke the rules of HTTP", "libcurl ended"]

  /// Faults in the head of an HTTP/1.1 response.
  private static let heads: [Case] = [
    Case(name: "cr-before-the-name", code: .protocolViolation, words: "name contains a carriage return (CR)"),
    Case(name: "cr-in-name", code: .protocolViolation, words: "name contains a carriage return (CR)"),
    Case(name: "fold-before-the-first-field", code: .protocolViolation, words: "begins with a space"),
    Case(name: "fold-in-length", code: .protocolViolation, words: "Content-Length"),
    Case(name: "flood-of-folds", code: .protocolViolation, words: "more than 64 folded lines"),
    Case(name: "nul-in-name", code: .protocolViolation, words: "NUL"),
    Case(name: "marks", code: .protocolViolation, words: "more than 30 combining marks"),
    Case(name: "nul-in-value", code: .protocolViolation, words: "NUL"),
    Case(name: "cr-in-value", code: .protocolViolation, words: "value contains a carriage return (CR)"),
    Case(name: "no-colon", code: .protocolViolation, words: "without a colon"),
    Case(name: "field-like-a-status-line", code: .protocolViolation, words: "without a colon"),
    Case(name: "empty-name", code: .protocolViolation, words: "a field without a name"),
    Case(name: "space-before-colon", code: .protocolViolation, words: "name contains a space"),
    Case(name: "quotes-in-name", code: .protocolViolation, words: "the character \""),
    Case(name: "8-bit-name", code: .protocolViolation, words: "the byte 0xe9"),
    Case(name: "status-letters", code: .protocolViolation, words: "status from 100 to 999"),
    Case(name: "status-099", code: .protocolViolation, words: "status from 100 to 999"),
    Case(name: "status-missing", code: .protocolViolation, words: "HTTP version"),
    Case(name: "version-1-2", code: .protocolViolation, words: "HTTP version"),
    Case(name: "version-icy", code: .protocolViolation, words: "not HTTP"),
    Case(name: "record-of-tls", code: .protocolViolation, words: "not HTTP"),
    Case(name: "no-head", code: .protocolViolation, words: "not HTTP"),
    Case(name: "a-request-comes-back", code: .protocolViolation, words: "not HTTP"),
    Case(name: "length-quoted", code: .protocolViolation, words: "Content-Length"),
    Case(name: "length-two-different", code: .protocolViolation, words: "Content-Length"),
    Case(name: "coding-xchunked", code: .protocolViolation, words: "Transfer-Encoding"),
    Case(name: "switching-unasked", code: .protocolViolation, words: "status 101"),
    Case(name: "a-hundred-thousand-fields", code: .headTooLarge, words: "2000 lines"),
    Case(name: "field-of-200-kilobytes", code: .headTooLarge, words: "longer than 100 KiB"),
    Case(name: "status-long-reason", code: .headTooLarge, words: "longer than 100 KiB"),
  ]

  /// Faults in the body of an HTTP/1.1 response, and connections that end too early.
  private static let bodies: [Case] = [
    Case(name: "chunk-size-no-digit", code: .protocolViolation, words: "hexadecimal"),
    Case(name: "chunk-size-negative", code: .protocolViolation, words: "hexadecimal"),
    Case(name: "chunk-size-2-to-the-63", code: .protocolViolation, words: "below 2^63"),
    Case(name: "chunk-size-2-to-the-68", code: .protocolViolation, words: "more than 16 digits"),
    Case(name: "chunk-end-missing", code: .protocolViolation, words: "where its size says"),
    Case(name: "chunk-longer-than-its-size", code: .protocolViolation, words: "where its size says"),
    Case(name: "trailers-without-colon", code: .protocolViolation, words: "after the last chunk"),
    Case(name: "trailers-with-nul", code: .protocolViolation, words: "after the last chunk"),
    Case(name: "a-hundred-thousand-trailers", code: .headTooLarge, words: "2000 lines"),
    Case(name: "flood-in-one-trailer", code: .headTooLarge, words: "longer than 4 KiB"),
    Case(name: "chunk-last-missing", code: .receiveFailed, words: "ended before the last chunk", ends: true),
    Case(name: "chunk-cut-in-data", code: .receiveFailed, words: "ended before the last chunk", ends: true),
    Case(
      name: "chunk-last-missing-reset", code: .receiveFailed, words: "reset before the last chunk", ends: true
    ),
    Case(name: "end-in-a-body-with-length", code: .receiveFailed, words: "ended 3 bytes before", ends: true),
    Case(
      name: "reset-in-a-body-with-length", code: .receiveFailed, words: "reset 3 bytes before", ends: true),
    Case(
      name: "end-behind-a-line", code: .receiveFailed, words: "ended inside the response's head", ends: true),
    Case(
      name: "reset-behind-a-line", code: .sendFailed, words: "reset before the end of the response",
      ends: true),
    Case(
      name: "end-before-the-head", code: .sendFailed, words: "ended before the response began", ends: true),
    Case(
      name: "reset-before-the-head", code: .sendFailed, words: "reset before the response began", ends: true),
  ]

  /// Faults in TLS and in HTTP/2.
  private static let encrypted: [Case] = [
    Case(
      name: "tls13-within-record-of-noise", code: .receiveFailed,
      words: "broke off (TLS: decryption failed or bad record mac) 3 bytes before", access: .tls),
    Case(
      name: "handshake-failure-alert", code: .tlsFailed, words: "alert \"handshake failure\"", access: .tls),
    Case(name: "handshake-is-ssh", code: .tlsFailed, words: "check that this port serves TLS", access: .tls),
    Case(name: "handshake-record-empty", code: .tlsFailed, words: "failed: record too small", access: .tls),
    Case(name: "handshake-odd-alert", code: .tlsFailed, words: "failed: unknown alert type", access: .tls),
    Case(
      name: "handshake-end-at-once", code: .tlsFailed,
      words: "closed the connection during the TLS handshake",
      ends: true, access: .tls),
    Case(
      name: "h2-hpack-index-0", code: .protocolViolation, words: "COMPRESSION_ERROR", ends: true,
      access: .http2),
    Case(
      name: "h2-preface-is-text", code: .protocolViolation, words: "PROTOCOL_ERROR", ends: true,
      access: .http2),
    Case(
      name: "h2-frame-data-over-size", code: .protocolViolation, words: "FRAME_SIZE_ERROR", ends: true,
      access: .http2),
    Case(name: "h2-name-in-upper-case", code: .protocolViolation, words: "PROTOCOL_ERROR", access: .http2),
    Case(name: "h2-length-too-long", code: .protocolViolation, words: "PROTOCOL_ERROR", access: .http2),
    Case(
      name: "h2-rst-8-before-the-head", code: .sendFailed,
      words: "reset with CANCEL before the response began",
      ends: true, access: .http2),
    Case(
      name: "h2-hpack-entries-again-and-again", code: .headTooLarge, words: "128 KiB", access: .http2),
    Case(name: "h2-hpack-a-megabyte-of-fields", code: .headTooLarge, words: "CONTINUATION", access: .http2),
    Case(
      name: "h2-flood-of-empty-settings", code: .protocolViolation, words: "require an answer", ends: true,
      access: .http2),
  ]

  /// Returns why an error differs from the expected one; `nil` when it does not.
  private static func fault(of error: NetOptError, _ wanted: Case) -> String? {
    if error.code != wanted.code { return "the code is \(error.code), not \(wanted.code)" }
    if !error.message.contains(wanted.words) { return "the message does not say \"\(wanted.words)\"" }
    for words in vague where error.message.contains(words) { return "the message says \"\(words)\"" }
    for words in ["ended", "closed", "was reset"] where !wanted.ends && error.message.contains(words) {
      return "the message says \"\(words)\", and the server did not end the connection"
    }
    // Whether another attempt may succeed.
    let mayHelp = [.protocolViolation, .receiveFailed, .sendFailed, .tlsFailed].contains(wanted.code)
    return error.isRetryable == mayHelp ? nil : "isRetryable is \(error.isRetryable)"
  }

  /// Sends a request to each scenario, and checks the error.
  private func check(_ cases: [Case], _ method: NetOptRequest.Method = .get) async throws {
    let server = try await HostileServer.shared.value
    let client = try NetOptClient(server.clientConfiguration)
    for wanted in cases {
      let endpoint = wanted.access == .plain ? server.plain : server.secure
      let scheme = wanted.access == .plain ? "http" : "https"
      var request = try NetOptRequest(
        method, "\(scheme)://\(wanted.name)--message.hostile.test:\(endpoint.port)/broken?q=1")
      request.options.routing = .pinned(endpoint.address)
      request.options.timeout = .seconds(10)
      request.options.maxAttempts = 1
      let error = try #require(await Outcome(of: request, by: client).error, "\(wanted.name) is answered")
      let fault = Self.fault(of: error, wanted)
      #expect(fault == nil, "\(wanted.name): \(fault ?? ""): \(error.message)")
    }
    #expect(server.newFaults().isEmpty)
    await client.shutdown()
  }

  @Test("an error message names the fault in a broken response head")
  func brokenHeads() async throws { try await check(Self.heads) }

  @Test("an error message names the fault in a broken response body")
  func brokenBodies() async throws { try await check(Self.bodies) }

  @Test("an error message names the fault in broken TLS or HTTP/2")
  func brokenEncryption() async throws { try await check(Self.encrypted) }
}
