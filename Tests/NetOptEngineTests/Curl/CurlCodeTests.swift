import CCurl
import Testing

@testable import NetOptEngine

/// What libcurl's codes are taken for.
@Suite struct CurlCodeTests {
  @Test(
    "a connection that cannot be read or written breaks no rule of HTTP/2",
    arguments: [
      "Recv failure: Connection reset by peer", "Send failure: Broken pipe",
      "OpenSSL SSL_read: Connection reset by peer, errno 104", "Recv failure: Connection timed out",
    ])
  func socket(_ words: String) {
    #expect(CurlCode.cause(of: CURLE_HTTP2, FailureWords(words)) == CURLE_RECV_ERROR)
  }

  @Test(arguments: ["", "nghttp2 shuts down connection with error 1: PROTOCOL_ERROR"])
  func otherFailuresOfHTTP2AreItsOwn(_ words: String) {
    #expect(CurlCode.cause(of: CURLE_HTTP2, FailureWords(words)) == CURLE_HTTP2)
  }

  @Test(arguments: [CURLE_OK, CURLE_HTTP2_STREAM, CURLE_WEIRD_SERVER_REPLY, CURLE_PARTIAL_FILE])
  func otherCodesStay(_ code: CURLcode) {
    #expect(CurlCode.cause(of: code, FailureWords("Recv failure: Connection reset by peer")) == code)
  }
}
