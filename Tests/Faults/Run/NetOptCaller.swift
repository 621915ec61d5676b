import NetOpt
import NetOptCore
import NetOptStorm

/// Sends the requests of one cell of the fault matrix (a fault, and the requests that meet it) with netopt.
/// Each lane is a task that sends one request at a time.
struct NetOptLanes: Caller {
  let cell: Cell
  let caller: NetOptCaller

  var lanes: Int { cell.concurrency }

  func perform(_ id: String) async throws -> [Call] {
    [try await caller.call(id, cell.traffic, cell.version)]
  }
}

/// Sends requests with netopt, and compares the responses with the expected ones.
struct NetOptCaller: Sendable {
  let site: Site
  let client: NetOptClient
  /// Measures how late this machine is, for `Call.allowance`.
  let lateness: Lateness
  /// The time that a request may take.
  let deadline: Duration

  private let clock = SystemTimeSource()

  init(site: Site, client: NetOptClient, lateness: Lateness, deadline: Duration) {
    self.site = site
    self.client = client
    self.lateness = lateness
    self.deadline = deadline
  }

  /// Sends a request and returns its result.
  func call(_ id: String, _ traffic: Traffic, _ version: HTTPVersion) async throws -> Call {
    let request = try request(id, traffic, version)
    let began = clock.now()
    let outcome = await outcome(of: request, id, traffic, version)
    let ended = clock.now()
    return Call(
      id: id, began: began, ended: ended, outcome: outcome, allowance: lateness.allowance(since: began))
  }

  private func request(_ id: String, _ traffic: Traffic, _ version: HTTPVersion) throws -> NetOptRequest {
    var request = try NetOptRequest(traffic.method, site.url(traffic, id))
    request.options.version = version == .http2 ? .http2 : .http1
    request.options.timeout = deadline
    request.body = traffic.body(of: id)
    if traffic == .keyedPost { request.headers["Idempotency-Key"] = "\"\(id)\"" }
    return request
  }

  private func outcome(
    of request: NetOptRequest, _ id: String, _ traffic: Traffic, _ version: HTTPVersion
  ) async -> Call.Outcome {
    var hadHead = false
    do throws(NetOptError) {
      let response = try await client.execute(request)
      hadHead = true
      let right = Content.answer(to: id, traffic)
      let body = try await response.body.collect(upTo: right.count + 1)
      let heads = "\(response.status) \(response.headers["x-id"] ?? "-") HTTP/\(response.version)"
      guard heads == "200 \(id) HTTP/\(version)", body == right else {
        return .wrong("\(heads), \(body.count) bytes of \(right.count), to \(id)")
      }
      return .answered(by: response.headers["x-origin"])
    } catch {
      return .failed(
        Call.Failure(
          code: error.code.description, message: "\(error)", hadHead: hadHead,
          mayBeWritten: error.phase == .send || error.phase == .receive))
    }
  }
}

extension Traffic {
  /// The request body that netopt sends.
  func body(of id: String) -> RequestBody {
    let body = Content.pattern(id, uploadSize)
    switch self {
    case .get, .down: return .none
    case .post, .keyedPost: return .bytes(body)
    case .up:
      return .stream(
        AsyncStream<[UInt8]> { stream in
          for start in stride(from: 0, to: body.count, by: 8192) {
            stream.yield(Array(body[start..<min(start + 8192, body.count)]))
          }
          stream.finish()
        })
    }
  }
}
