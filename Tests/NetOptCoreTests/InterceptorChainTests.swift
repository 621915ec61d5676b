import NetOptCore
import NetOptLocking
import Testing

/// Tests of `InterceptorChain`. Each interceptor passes a request on with `next.proceed`, or answers itself.
@Suite struct InterceptorChainTests {
  /// An interceptor that calls a closure of the test.
  private struct Link: Interceptor {
    let body: @Sendable (NetOptRequest, InterceptorChain) async throws(NetOptError) -> NetOptResponse

    func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError)
      -> NetOptResponse
    {
      try await body(request, next)
    }
  }

  /// A list of lines, to which the interceptors of a test add what they see.
  private final class Record: Sendable {
    private let lines = Locked<[String]>([])
    var all: [String] { lines.withLock { $0 } }
    func add(_ line: String) { lines.withLock { $0.append(line) } }
  }

  /// The context of every call: the call has number 7 and no deadline.
  private let context = CallContext(id: 7, started: MonotonicInstant(nanoseconds: 0), deadline: nil)
  private let record = Record()

  /// Makes a response without a body.
  private func answer(_ request: NetOptRequest, status: Int = 200) -> NetOptResponse {
    let plan = RoutePlan(origin: request.url.origin, policy: .fastest, legs: [.init(.dns, source: .dns)])
    return NetOptResponse(
      url: request.url, head: ResponseHead(status: status), body: ResponseBody([]),
      route: RouteReport(plan: plan, legs: []))
  }

  /// An interceptor that records that a request (">") or a response ("<") passes it. It appends its name to
  /// the request's field `Way`.
  private func around(_ name: String) -> Link {
    Link { [record] request, next throws(NetOptError) in
      record.add("> \(name)")
      var request = request
      request.headers["Way"] = (request.headers["Way"] ?? "") + name
      let response = try await next.proceed(request)
      record.add("< \(name)")
      return response
    }
  }

  /// The last interceptor of a chain. It answers each request, and records the value of the field `Way` and
  /// the number of the call.
  private var transport: Link {
    Link { [record, self] request, next in
      record.add("\(request.headers["Way"] ?? "-") of \(next.context.id)")
      return answer(request)
    }
  }

  @Test("a chain calls its interceptors from the first to the last")
  func callOrder() async throws {
    let chain = InterceptorChain([around("a"), around("b"), transport], context: context)
    #expect(try await chain.proceed(NetOptRequest(.get, "https://a.test")).status == 200)
    #expect(record.all == ["> a", "> b", "ab of 7", "< b", "< a"])
  }

  @Test("an interceptor can call the rest of the chain twice, with a changed context")
  func secondCall() async throws {
    let twice = Link { request, next throws(NetOptError) in
      _ = try await next.proceed(request)
      var next = next
      next.context.id = 8
      return try await next.proceed(request)
    }
    let chain = InterceptorChain([twice, around("b"), transport], context: context)
    _ = try await chain.proceed(NetOptRequest(.get, "https://a.test"))
    #expect(record.all == ["> b", "b of 7", "< b", "> b", "b of 8", "< b"])
  }

  @Test("an interceptor that answers itself ends the chain")
  func earlyResponse() async throws {
    let cache = Link { [self] request, _ in answer(request, status: 304) }
    let chain = InterceptorChain([around("a"), cache, transport], context: context)
    #expect(try await chain.proceed(NetOptRequest(.get, "https://a.test")).status == 304)
    #expect(record.all == ["> a", "< a"])
  }

  @Test("a chain passes the error of an interceptor to the caller")
  func errors() async throws {
    let failing = Link { _, _ throws(NetOptError) in throw NetOptError(.timeout, phase: .send, "too late") }
    let chain = InterceptorChain([around("a"), failing], context: context)
    let error = await #expect(throws: NetOptError.self) {
      try await chain.proceed(NetOptRequest(.get, "https://a.test"))
    }
    #expect(error?.code == .timeout)
    #expect(record.all == ["> a"])
  }

  @Test("a chain without an interceptor that answers throws invalidConfiguration", arguments: [0, 1, 2])
  func noResponse(_ count: Int) async throws {
    let links = (0..<count).map { around("\($0)") }
    let chain = InterceptorChain(links, context: context)
    let error = await #expect(throws: NetOptError.self) {
      try await chain.proceed(NetOptRequest(.get, "https://a.test"))
    }
    #expect(error?.code == .invalidConfiguration)
    #expect(record.all == (0..<count).map { "> \($0)" })
  }
}
