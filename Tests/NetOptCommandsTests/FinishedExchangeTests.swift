import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

/// Tests of the JSON that `netopt get --json` prints for a response or an error.
@Suite struct FinishedExchangeTests {
  /// A finished exchange with a GET request. Its body had 6 bytes.
  private func exchange(_ response: NetOptResponse) -> FinishedExchange {
    FinishedExchange(.get, response, bodyBytes: 6)
  }

  private func request() throws -> NetOptRequest {
    try NetOptRequest(.get, "https://api.example.com/v1/ping?a=b")
  }

  @Test("the JSON of a response has the documented keys in the documented order")
  func documentedKeys() throws {
    let json = exchange(Samples.response(to: try request())).json
    let text = #"""
      {"schema_version":1,"url":"https://api.example.com/v1/ping?a=b","status":200,"http_version":"2",\#
      "remote_ip":"203.0.113.9","remote_port":443,"route":{"source":"list","policy":"fastest",\#
      "direct":{"used":true,"off":null},"candidates":[\#
      {"ip":"203.0.113.7","score_us":20100,"source":"list"},{"ip":"203.0.113.9","score_us":24240,"source":"list"},\#
      {"ip":"2001:db8::7","score_us":null,"source":"list"},\#
      {"ip":"192.0.2.66","score_us":null,"source":"list","excluded":"it failed 3 times in a row"}],\#
      "legs":[{"ip":"203.0.113.7","source":"list","started_us":0,"connected_us":null,"tls_us":null,\#
      "outcome":"failed","error":"connection refused"},{"ip":"203.0.113.9","source":"list","started_us":1200,\#
      "connected_us":21300,"tls_us":42500,"outcome":"won"}],"fallback":null},\#
      "tls":{"verified":true,"version":"TLSv1.3"},"timings_us":{"queue":1200,"dns":0,"connect":20100,"tls":21200,\#
      "send":90,"wait":18900,"transfer":2310,"total":63800},"server_timing":[],"reused":false,"cache":"off","signed":null,\#
      "attempts":1,"headers":[["content-type","text/plain"],["set-cookie","a=1"],["set-cookie","b=\"2\""]],\#
      "body_bytes":6}
      """#
    #expect(json.description == text)
  }

  @Test("the total time is the sum of the printed times")
  func total() {
    var timings = Timings()
    timings.connect = .nanoseconds(1900)
    timings.wait = .nanoseconds(1900)
    #expect(
      timings.json.description
        == #"{"queue":0,"dns":0,"connect":1,"tls":0,"send":0,"wait":1,"transfer":0,"total":2}"#)
  }

  @Test("the JSON of an error includes its route")
  func errorRoute() {
    let json = FinishedExchange.failure(url: "https://api.example.com/", Samples.error)
    let text = #"""
      {"schema_version":1,"url":"https://api.example.com/","error":{"code":"connect-failed","phase":"connect",\#
      "message":"nobody answered for api.example.com; check the network","endpoint":"203.0.113.7:443"},\#
      "route":{"source":"dns","policy":"fastest","direct":{"used":false,"off":null},\#
      "candidates":[{"ip":"203.0.113.7","score_us":5000,"source":"list"}],\#
      "legs":[{"ip":"203.0.113.7","source":"list","started_us":0,"connected_us":5000,"tls_us":null,\#
      "outcome":"failed","error":"the certificate is for *.portal.lan, not for api.example.com; correct the list"},\#
      {"ip":null,"source":"dns","started_us":12000,"connected_us":null,"tls_us":null,"outcome":"failed",\#
      "error":"no name server answered"}],"fallback":"all-failed"}}
      """#
    #expect(json.description == text)
  }

  @Test("the JSON of a response or an error includes the other attempts")
  func otherAttempts() throws {
    var response = Samples.response(to: try request())
    response.otherAttempts = Samples.attempts
    let tail = #"""
      "other_attempts":[{"number":1,"reason":"first","started_us":0,"ended_us":12000,"remote_ip":"203.0.113.7",\#
      "remote_port":443,"sends":1,"error":{"code":"send-failed","phase":"send","message":"the connection\u001b died"},\#
      "route":null},{"number":2,"reason":"retry","started_us":12000,"ended_us":30000,"remote_ip":"203.0.113.7",\#
      "remote_port":443,"sends":1,"status":503,"route":null},{"number":3,"reason":"hedge","started_us":70000,\#
      "ended_us":80000,"remote_ip":null,"remote_port":null,"sends":0,"overtaken":true,"route":null}]}
      """#
    #expect(exchange(response).json.description.hasSuffix("\"body_bytes\":6," + tail))
    let error = Samples.error.with(otherAttempts: Samples.attempts)
    #expect(FinishedExchange.failure(url: "x", error).description.hasSuffix("}," + tail))
  }

  /// A route is shared when the call used the result of another call's race.
  @Test("the JSON and the text say that a race was shared and that the network seems down")
  func sharedRace() {
    let route = Samples.shared
    #expect(Samples.lost.json.description.hasSuffix(#""fallback":"all-failed"}"#))
    let end = #""fallback":"all-failed","shared":true,"network_suspected":true}"#
    #expect(route.json.description.hasSuffix(end))
    let text = Waterfall(failed: "https://a/", route).text(columns: 100)
    #expect(text.contains("\nRACE     shared: ") && text.contains("\nNETWORK  seems down"), "\(text)")
  }

  @Test("the JSON of an error without a route has the route null")
  func errorWithoutRoute() {
    let error = NetOptError(.invalidURL, phase: .resolve, "no")
    #expect(
      FinishedExchange.failure(url: "x", error).description
        == #"{"schema_version":1,"url":"x","error":{"code":"invalid-url","phase":"resolve","message":"no"},"route":null}"#
    )
  }

  @Test(
    "the JSON of responses and errors matches the schema of get",
    .enabled("\(JSONSchema.missing)") { try await JSONSchema.isInstalled() })
  func schema() async throws {
    let plain = NetOptResponse(
      url: try HTTPURL("http://a.example/"), head: ResponseHead(status: 204), body: ResponseBody([]),
      route: Samples.fallback)
    var repeated = Samples.response(to: try request())
    repeated.otherAttempts = Samples.attempts
    repeated.route = Samples.shared
    let values = [
      exchange(repeated).json,
      FinishedExchange.failure(url: "x", Samples.error.with(otherAttempts: Samples.attempts)),
      exchange(Samples.response(to: try request())).json, exchange(plain).json,
      FinishedExchange.failure(url: "https://api.example.com/", Samples.error),
      FinishedExchange.failure(url: "x", NetOptError(.invalidURL, phase: .resolve, "no")),
    ]
    for value in values {
      #expect(try await JSONSchema.faults(of: value.description, by: "get") == "")
    }
  }

  @Test(
    "the schema of get refuses an unknown key",
    .enabled("\(JSONSchema.missing)") { try await JSONSchema.isInstalled() })
  func unknownKey() async throws {
    var json = exchange(Samples.response(to: try request())).json
    json.append("surprise", nil)
    #expect(try await JSONSchema.faults(of: json.description, by: "get") != "")
  }
}
