import FoundationEssentials
import NetOptCore
import NetOptTestSupport
import Synchronization
import TestTools
import Testing

@testable import NetOpt

/// What an observer gets at the end of a call.
@Suite struct CallRecordTests {
  /// Records how calls end.
  private final class Observer: CallRecordObserver {
    let events = EventRecorder<(id: UInt64, what: String)>()
    let records = EventRecorder<CallRecord>()

    func callWillStart(_ id: UInt64, _ request: NetOptRequest) { events.record((id, "start")) }
    func callDidFinish(_ id: UInt64, _ timings: Timings) { events.record((id, "end")) }
    func callDidFail(_ id: UInt64, _ error: NetOptError) { events.record((id, "fail")) }
    func callDidEnd(_ call: CallRecord) {
      events.record((call.id, "record"))
      records.record(call)
    }
  }

  /// Takes no records.
  private final class EventObserver: CallObserver {
    let count = Atomic(0)
    let atEnd: @Sendable () -> Void

    init(_ atEnd: @escaping @Sendable () -> Void) { self.atEnd = atEnd }

    func callDidFinish(_ id: UInt64, _ timings: Timings) {
      count.add(1, ordering: .relaxed)
      atEnd()
    }
  }

  /// How the stub answers a path.
  private static func outcome(_ path: Substring) -> StubAnswer {
    switch path {
    case "/redirect": .response(StubResponse(302, fields: ["Location": "/end?api_key=hunter2"], body: []))
    case "/empty": .response(StubResponse(204))
    case "/missing": .response(StubResponse(404, body: Array("none".utf8)))
    case "/late": .silence
    default: .response(StubResponse(body: Array(repeating: 7, count: 1000)))
    }
  }

  @Test("each call ends once, with its own request, response and durations", arguments: 1...3)
  func everyCall(seed: UInt64) async throws {
    let observer = Observer()
    let lab = try StubLab([.answer { request, _ in Self.outcome(request.url.path) }]) {
      $0.observers = [observer]
    }
    var random = SplitMix64(seed: seed)
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    var expected: [String: (path: String, end: String)] = [:]
    for number in 0..<200 {
      let path = random.element(of: ["/", "/redirect", "/empty", "/missing", "/late"])
      let end = path == "/late" ? "cancel" : random.element(of: ["read", "release", "part"])
      expected["\(number)"] = (path, end)
      var request = try NetOptRequest(.get, "https://\(StubLab.host)\(path)?n=\(number)&token=hunter2")
      request.options.tag = "\(number)"
      request.headers["Authorization"] = "Bearer hunter2"
      if random.isOne(in: 2) { request.headers["traceparent"] = parent }
      let (client, sent) = (lab.client, request)
      let task = Task {
        let response = try await client.execute(sent)
        switch end {
        case "read": _ = try await response.body.collect(upTo: 10_000)
        case "part": for try await _ in response.body { break }
        default: break
        }
      }
      if end == "cancel" {
        try await wait(for: "the request") {
          lab.transport.received.last?.request.options.tag == sent.options.tag
        }
        task.cancel()
      }
      _ = await task.result
    }
    let count = expected.count
    let records = try await observer.records.wait(for: "the ends") { $0.count >= count }
    await lab.client.shutdown()
    #expect(records.count == expected.count && Set(records.map(\.id)).count == expected.count)
    for record in records {
      let (path, end) = try #require(expected[record.request.options.tag ?? ""])
      #expect(record.request.url.path == path)
      let own = observer.events.events.filter { $0.id == record.id }.map(\.what)
      #expect(own == ["start", record.error == nil ? "end" : "fail", "record"])
      if path == "/late" {
        #expect(record.response == nil && record.error?.code == .cancelled)
      } else {
        let response = try #require(record.response)
        #expect(response.status == ["/empty": 204, "/missing": 404][path] ?? 200)
        #expect(response.url.path == (path == "/redirect" ? "/end" : path))
        #expect(record.error == nil, "\(path) \(end)")
        #expect(response.timings == record.timings && record.timings.total <= record.duration)
        // The record does not hold the body.
        #expect(try await response.body.collect(upTo: 10) == [])
      }
      let trace = record.request.headers["traceparent"] == nil ? nil : "0af7651916cd43dd8448eb211c80319c"
      #expect(record.traceID == trace)
      let json = record.json
      #expect(!json.contains("hunter2") && !json.contains("\n"))
      #expect(json.contains("\"tag\":\"\(record.request.options.tag ?? "")\""))
    }
    let faults = try await JSONSchema.faults(of: records.map(\.json), by: "call")
    #expect(faults.allSatisfy { $0 == "" }, "\(faults.first { $0 != "" } ?? "")")
  }

  @Test("the record of a call comes after the events of all observers, and only to those that take records")
  func order() async throws {
    let (first, second) = (Observer(), Observer())
    let plain = EventObserver {
      #expect(first.records.events.isEmpty && second.records.events.isEmpty)
    }
    let lab = try StubLab([.respond(200)]) { $0.observers = [first, plain, second] }
    _ = try await lab.client.execute(try lab.request()).body.collect(upTo: 10)
    await lab.client.shutdown()
    #expect(first.records.events.count == 1 && second.records.events.count == 1)
    #expect(plain.count.load(ordering: .relaxed) == 1)
  }

  /// `Observer` keeps its records.
  @Test("a record does not keep an observer alive")
  func life() async throws {
    weak var kept: Observer?
    do {
      let observer = Observer()
      kept = observer
      let lab = try StubLab([.respond(200)]) { $0.observers = [observer] }
      _ = try await lab.client.execute(try lab.request()).body.collect(upTo: 10)
      await lab.client.shutdown()
      #expect(observer.records.events.count == 1)
    }
    try await wait(for: "the end of the observer") { kept == nil }
  }

  @Test("a record tells the attempts that failed before the response")
  func attempts() async throws {
    let observer = Observer()
    let lab = try StubLab([.respond(503), .respond(200)]) { $0.observers = [observer] }
    _ = try await lab.client.execute(try lab.request()).body.collect(upTo: 10)
    lab.transport.set(.respond(503), for: lab.addresses[1])
    _ = try await lab.client.execute(try lab.request()).body.collect(upTo: 10)
    lab.transport.set(.refuse, for: lab.addresses[0])
    lab.transport.set(.refuse, for: lab.addresses[1])
    await #expect(throws: NetOptError.self) {
      try await lab.client.execute(try lab.request { $0.options.connection = .fresh })
    }
    let records = observer.records.events
    await lab.client.shutdown()
    #expect(records.count == 3 && records[0].response?.attempts == 2)
    #expect(records[0].json.contains("\"other_attempts\":[{\"number\":1,\"reason\":\"first\""))
    #expect(records[2].response == nil && records[2].json.contains("\"error\":{\"code\":\"connect-failed\""))
    #expect(try await JSONSchema.faults(of: records.map(\.json), by: "call") == ["", "", ""])
  }
}
