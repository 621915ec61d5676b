import CCurl
import Testing

@testable import NetOptEngine

/// The meaning of libcurl's error codes.
@Suite struct CurlCodeTests {
  @Test(
    "CURLE_HTTP2 with the message of a socket error counts as CURLE_RECV_ERROR",
    arguments: [
      "Recv failure: Connection reset by peer", "Send failure: Broken pipe",
      "OpenSSL SSL_read: Connection reset by peer, errno 104", "Recv failure: Connection timed out",
    ])
  func socket(_ words: String) {
    #expect(CurlCode.cause(of: CURLE_HTTP2, CurlErrorText(words)) == CURLE_RECV_ERROR)
  }

  @Test(
    "CURLE_HTTP2 with any other message stays CURLE_HTTP2",
    arguments: ["", "nghttp2 shuts down connection with error 1: PROTOCOL_ERROR"])
  func http2Errors(_ words: String) {
    #expect(CurlCode.cause(of: CURLE_HTTP2, CurlErrorText(words)) == CURLE_HTTP2)
  }

  @Test(
    "codes other than CURLE_HTTP2 do not depend on the message",
    arguments: [CURLE_OK, CURLE_HTTP2_STREAM, CURLE_WEIRD_SERVER_REPLY, CURLE_PARTIAL_FILE])
  func otherCodes(_ code: CURLcode) {
    #expect(CurlCode.cause(of: code, CurlErrorText("Recv failure: Connection reset by peer")) == code)
  }
}
