import NetOpt
import NetOptCore
import NetOptTestSupport
import Testing

@testable import NetOptStorm

/// Tests of the checks that a storm makes (`Judge` and `Ledger`). A judge that accepts wrong responses would
/// find nothing in a storm.
@Suite struct JudgeTests {
  /// Plans a GET to the first host for each index, with a response body of 5,000 bytes. The responses to
  /// requests 0 to 99 are not cacheable and have two additional fields. Requests 100 to 199 are for one
  /// cacheable URL. Requests from 200 on are for another URL, whose responses have `no-store`.
  private let generator = RequestGenerator(seed: 1) { plan in
    plan = RequestPlan(index: plan.index, host: StormHost.all[0])
    plan.answer.size = 5000
    plan.answer.fields = 2
    if plan.index >= 100 {
      plan.answer.cached = AnswerPlan.Cached(number: 3, maxAge: 1, noStore: plan.index >= 200, varies: true)
      plan.answer.fields = 0
    }
  }

  /// The `Host` field of the requests.
  private static let authority = "new.test:1234"

  /// A response in the form in which tests make it wrong.
  private struct Answer {
    var status = 200
    var fields: HeaderFields
    var body: [UInt8]
    var version = HTTPVersion.http2
    /// Whether the client reports that the response comes from its cache.
    var isHit = false
    /// Whether the client reports that the body is complete.
    var isWhole = true
  }

  /// The right response to the request with this index.
  ///
  /// - Parameter version: the version of the resource that the response carries. Only cacheable responses
  ///   state a version.
  private func right(_ index: Int, version: Int = 1) -> Answer {
    let plan = generator.plan(index)
    var fields = HeaderFields()
    fields += AnswerFields.expected(
      index: index, method: "GET", authority: Self.authority, plan: plan.answer, received: 0)
    var body = Content.answer(to: index).bytes(5000)
    if plan.answer.cached != nil {
      fields += [HeaderField("X-Version", "\(version)"), HeaderField("X-Flavour", "0")]
      body = Content.cached(Self.authority + plan.answer.target, flavour: "0", version: version).bytes(5000)
    }
    return Answer(fields: fields, body: body)
  }

  /// Lets the judge check a response.
  ///
  /// - Parameters:
  ///   - index: the request to which the response came.
  ///   - record: the responses that the servers sent for cacheable URLs.
  /// - Returns: the kinds of violations that the judge found.
  private func judged(
    _ answer: Answer, as index: Int = 7, _ record: CacheRecord = CacheRecord(seed: 1)
  ) -> Set<Violation.Kind> {
    let violations = Violations()
    var judge = Judge(generator.plan(index), authority: Self.authority, record, violations)
    let url = HTTPURL(origin: Origin(.https, host: "new.test", port: 1234), target: "/")
    let head = ResponseHead(status: answer.status, version: answer.version, fields: answer.fields)
    let plan = RoutePlan(origin: url.origin, policy: .fastest, legs: [RoutePlan.Leg(.dns, source: .dns)])
    var response = NetOptResponse(
      url: url, head: head, body: ResponseBody(answer.body), route: RouteReport(plan: plan, legs: []))
    if answer.isHit { response.cacheStatus = CacheStatus(.hit, by: CacheRule("is fresh", "4.2")) }
    judge.head(response, generator)
    // In chunks, as bodies arrive.
    for start in stride(from: 0, to: answer.body.count, by: 1000) {
      judge.chunk(Array(answer.body[start..<min(start + 1000, answer.body.count)]))
    }
    if answer.isWhole { judge.end() }
    return Set(violations.counts.keys)
  }

  @Test("the judge accepts a right response, and a cut one that is not reported as complete")
  func rightAnswers() {
    #expect(judged(right(7)).isEmpty)
    var cut = right(7)
    cut.body = Array(cut.body.prefix(100))
    cut.isWhole = false
    #expect(judged(cut).isEmpty)
  }

  @Test("the judge finds every kind of mistake in a response", arguments: Mistake.allCases)
  func mistakes(_ mistake: Mistake) {
    var answer = right(7)
    let expected: Violation.Kind
    switch mistake {
    case .otherAnswer:
      answer = right(8)
      expected = .wrongAnswer
    case .noID:
      answer.fields["X-Id"] = nil
      expected = .wrongAnswer
    case .otherBody:
      answer.body = right(8).body
      expected = .wrongBody
    case .lastByte:
      answer.body[4999] ^= 1
      expected = .wrongBody
    case .foreignBytes:
      answer.body.insert(contentsOf: right(8).body[1000..<1200], at: 3000)
      expected = .wrongBody
    case .oneByteMore:
      answer.body.append(0)
      expected = .wrongBody
    case .oneByteLess:
      answer.body.removeLast()
      expected = .shortBody
    case .empty:
      answer.body = []
      expected = .shortBody
    case .otherField:
      answer.fields["X-Field-1"] = right(8).fields["X-Field-1"]
      expected = .wrongFields
    case .fieldMissing:
      answer.fields["X-Field-0"] = nil
      expected = .wrongFields
    case .fieldTwice:
      answer.fields.append(answer.fields[1])
      expected = .wrongFields
    case .otherHost:
      answer.fields["X-Host"] = "old.test:1234"
      expected = .wrongFields
    case .status:
      answer.status = 201
      expected = .wrongStatus
    case .version:
      answer.version = .http1_1
      expected = .wrongVersion
    case .cachedAlthoughNotShared:
      answer = right(8)
      answer.isHit = true
      expected = .wrongAnswer
    }
    #expect(judged(answer).contains(expected))
  }

  /// What `mistakes` changes in the right response to request 7. In the cases whose names begin with `other`,
  /// and in `foreignBytes`, the wrong part comes from the response to request 8; only `otherHost` names
  /// another host instead. In `cachedAlthoughNotShared`, the client reports the response to request 8 as a
  /// cached one, although the URL of request 7 is not cacheable.
  enum Mistake: CaseIterable, Sendable {
    case otherAnswer, noID, otherBody, lastByte, foreignBytes, oneByteMore, oneByteLess, empty, otherField
    case fieldMissing, fieldTwice, otherHost, status, version, cachedAlthoughNotShared
  }

  @Test("the judge accepts a cached response only if it is complete, storable and sent for that URL")
  func cachedAnswers() {
    let record = CacheRecord(seed: 1)
    let url = Self.authority + generator.plan(100).answer.target
    let sent = record.answer(to: 100, url, flavour: "0", ifNoneMatch: nil)
    #expect(sent.version == 1 && !sent.isNotModified)
    var answer = right(101)
    answer.isHit = true
    #expect(judged(answer, as: 100, record).isEmpty)
    // No server sent version 2.
    var unsent = right(101, version: 2)
    unsent.isHit = true
    #expect(judged(unsent, as: 100, record).contains(.wrongCached))
    var cut = answer
    cut.body.removeLast()
    #expect(judged(cut, as: 100, record).contains(.shortBody))
    // First a response for another URL, then a response with no-store.
    var other = right(7)
    other.isHit = true
    #expect(judged(other, as: 100, record).contains(.wrongAnswer))
    _ = record.answer(
      to: 200, Self.authority + generator.plan(200).answer.target, flavour: "0", ifNoneMatch: nil)
    var stored = right(200)
    stored.isHit = true
    #expect(judged(stored, as: 200, record).contains(.wrongCached))
  }

  @Test("the ledger reports a non-repeatable request that arrived twice, and a wrong method")
  func repetitions() {
    for (method, hasKey, isViolation) in [
      (NetOptRequest.Method.post, false, true), (.post, true, false), (.put, false, false),
    ] {
      let generator = RequestGenerator(seed: 1) { plan in
        plan.method = method
        plan.hasKey = hasKey
      }
      let violations = Violations()
      let ledger = Ledger(generator, violations)
      // The backend and nginx's log report the same arrival.
      for _ in 0..<2 { ledger.reached(5, method.rawValue, front: "a") }
      #expect(violations.counts.isEmpty)
      ledger.reached(5, method.rawValue, front: "b")
      #expect(violations.counts[.sentTwice] == (isViolation ? 1 : nil))
      #expect(ledger.total == 2)
      ledger.reached(5, "PATCH", front: "b")
      #expect(violations.counts[.wrongRequest] == 1)
    }
  }

  @Test("the ledger reports an upload that differs from the sent body")
  func wrongUploads() {
    let generator = RequestGenerator(seed: 1) { plan in
      plan.upload = .bytes(3000)
      plan.answer = AnswerPlan()
    }
    let target = AnswerPlan().target
    let body = Content.upload(of: 5).bytes(3000)
    for (bytes, isRight) in [(body, true), (Array(body.dropLast()), false), (body + [1], false)] {
      let violations = Violations()
      Ledger(generator, violations).uploaded(5, bytes, target: target)
      #expect(violations.counts[.wrongUpload] == (isRight ? nil : 1))
    }
  }
}
