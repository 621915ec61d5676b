import NetOptBench
import Testing

@Suite struct PreflightTests {
  /// The code of each target's exclusion, `nil` for a target that is not excluded. `statuses` has the status
  /// of each target's first response, `nil` for a target without a sample.
  private func codes(_ statuses: [Int?]) -> [String?] {
    Preflight.exclusions(after: statuses.map { $0.map { Sample(.answered(status: $0)) } }).map { $0?.code }
  }

  @Test("preflight excludes a target whose status differs from the most frequent status")
  func commonStatus() {
    #expect(codes([200, 200, 204]) == [nil, nil, "status"])
    #expect(codes([301, 301, 301]) == [nil, nil, nil])
  }

  @Test("preflight excludes targets with error statuses, even if most targets have them")
  func errorStatuses() {
    #expect(codes([503, 503, 200]) == ["status", "status", nil])
    #expect(codes([404, 404]) == ["status", "status"])
  }

  @Test("preflight expects the lowest of equally frequent statuses")
  func equalFrequency() {
    #expect(codes([302, 200]) == ["status", nil])
  }

  @Test("the reason names the target's status, and the status of most targets if there is one")
  func reasons() {
    let samples = [200, 500].map { Sample(.answered(status: $0)) }
    #expect(Preflight.exclusions(after: samples)[1]?.reason == "answers 500, most targets 200")
    #expect(Preflight.exclusions(after: [samples[1]])[0]?.reason == "answers 500")
  }

  @Test("preflight excludes a failed target with the code and reason of the failure")
  func failure() {
    let failed = Sample(.failed(SampleFailure(.connect, code: "refused", reason: "connect: refused")))
    let found = Preflight.exclusions(after: [failed, Sample(.answered(status: 200))])
    #expect(found == [Exclusion(code: "refused", reason: "connect: refused"), nil])
  }

  @Test("preflight does not exclude a target without a sample")
  func missingSamples() {
    #expect(codes([nil, 200]) == [nil, nil])
    #expect(codes([]) == [])
  }
}
