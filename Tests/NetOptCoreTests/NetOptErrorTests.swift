import NetOptCore
import Testing

@Suite struct NetOptErrorTests {
  /// The names are in the JSON output, and users' scripts depend on them.
  @Test(arguments: [
    (NetOptError.Code.invalidURL, "invalid-url"), (.invalidRequest, "invalid-request"),
    (.invalidConfiguration, "invalid-configuration"), (.invalidList, "invalid-list"),
    (.unreadableFile, "unreadable-file"), (.cancelled, "cancelled"), (.timeout, "timeout"),
    (.shutDown, "shut-down"),
    (.nameNotFound, "name-not-found"), (.resolverFailed, "resolver-failed"),
    (.connectFailed, "connect-failed"),
    (.tlsFailed, "tls-failed"), (.certificateName, "certificate-name"),
    (.certificateUntrusted, "certificate-untrusted"), (.certificateExpired, "certificate-expired"),
    (.sendFailed, "send-failed"), (.receiveFailed, "receive-failed"),
    (.protocolViolation, "protocol-violation"),
    (.decodeFailed, "decode-failed"), (.bodyTooLarge, "body-too-large"),
    (.tooManyRedirects, "too-many-redirects"),
    (.unsupported, "unsupported"), (.libraryFailed, "library-failed"),
  ])
  func codesHaveStableNames(_ code: NetOptError.Code, _ name: String) {
    #expect(code.description == name)
  }

  /// libcurl's error CURLE_COULDNT_CONNECT.
  private let underlying = NetOptError.Underlying(.curl, code: 7, text: "Couldn't connect to server")

  @Test("the description adds the library's code and text to the message")
  func libraryText() {
    #expect(NetOptError(.timeout, phase: .connect, "too late").description == "too late")
    let error = NetOptError(.connectFailed, phase: .connect, "no connection", underlying: underlying)
    #expect(error.description == "no connection (curl 7: Couldn't connect to server)")
  }

  @Test("an error has no endpoint, library error or route by default, and is not retryable")
  func defaultValues() {
    let error = NetOptError(.timeout, phase: .send, "too late")
    #expect(error.code == .timeout && error.phase == .send && error.message == "too late")
    #expect(error.endpoint == nil && error.underlying == nil && error.route == nil && !error.isRetryable)
  }

  @Test("with(route:) keeps all other properties of an error")
  func withRoute() {
    let endpoint = IPEndpoint(IPAddress(v4: 1), port: 2)
    let origin = Origin(.https, host: "a.test")
    let plan = RoutePlan(origin: origin, policy: .fastest, legs: [.init(.dns, source: .dns)])
    let error = NetOptError(
      .sendFailed, phase: .send, "broken", endpoint: endpoint, underlying: underlying, isRetryable: true
    ).with(route: RouteReport(plan: plan, legs: []))
    #expect(
      error.code == .sendFailed && error.phase == .send && error.message == "broken" && error.isRetryable)
    #expect(error.endpoint == endpoint)
    #expect(error.underlying == underlying)
    #expect(error.route?.plan.origin == origin)
  }
}
