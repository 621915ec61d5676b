import NetOptBench
import Testing

@Suite struct PreflightTests {
  private func codes(_ statuses: [Int?]) -> [String?] {
    Preflight.exclusions(after: statuses.map { $0.map { Sample(.answered(status: $0)) } }).map { $0?.code }
  }

  @Test func whoAnswersLikeMostIsMeasured() {
    #expect(codes([200, 200, 204]) == [nil, nil, "status"])
    #expect(codes([301, 301, 301]) == [nil, nil, nil])
  }

  @Test func errorsNeverCountAsWhatIsExpected() {
    #expect(codes([503, 503, 200]) == ["status", "status", nil])
    #expect(codes([404, 404]) == ["status", "status"])
  }

  @Test func ofStatusesThatAreAsFrequentTheLowestIsExpected() {
    #expect(codes([302, 200]) == ["status", nil])
  }

  @Test func theReasonNamesBothStatuses() {
    let samples = [200, 500].map { Sample(.answered(status: $0)) }
    #expect(Preflight.exclusions(after: samples)[1]?.reason == "answers 500, most targets 200")
    #expect(Preflight.exclusions(after: [samples[1]])[0]?.reason == "answers 500")
  }

  @Test func aFailureExcludesWithItsOwnReason() {
    let failed = Sample(.failed(SampleFailure(.connect, code: "refused", reason: "connect: refused")))
    let found = Preflight.exclusions(after: [failed, Sample(.answered(status: 200))])
    #expect(found == [Exclusion(code: "refused", reason: "connect: refused"), nil])
  }

  @Test func whatWasNotTriedIsNotExcluded() {
    #expect(codes([nil, 200]) == [nil, nil])
    #expect(codes([]) == [])
  }
}
