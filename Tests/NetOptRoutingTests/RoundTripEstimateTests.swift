import NetOptCore
import Testing

@testable import NetOptRouting

@Suite struct RoundTripEstimateTests {
  @Test("the first sample is the estimate, and half of it is the variation")
  func firstSample() {
    let estimate = RoundTripEstimate(.milliseconds(100))
    #expect(estimate.smoothed == .milliseconds(100))
    #expect(estimate.variation == .milliseconds(50))
    #expect(estimate.bound == .milliseconds(300))
  }

  @Test func smoothsAsRFC6298Does() {
    var estimate = RoundTripEstimate(.milliseconds(100))
    estimate.add(.milliseconds(180))
    #expect(estimate.variation == .microseconds(57_500))
    #expect(estimate.smoothed == .milliseconds(110))
    estimate.add(.milliseconds(110))
    #expect(estimate.variation == .microseconds(43_125))
    #expect(estimate.smoothed == .milliseconds(110))
  }

  @Test("an estimate converges to a constant sample")
  func constantSample() {
    var estimate = RoundTripEstimate(.milliseconds(900))
    for _ in 0..<100 { estimate.add(.milliseconds(20)) }
    #expect(estimate.smoothed - .milliseconds(20) < .microseconds(10))
    #expect(estimate.bound < .microseconds(20_100))
  }

  @Test("an estimate stays from 0 to 3,600 s, whatever the samples")
  func extremeSamples() {
    var estimate = RoundTripEstimate(.seconds(-5))
    #expect(estimate.smoothed == .zero)
    for sample in [Duration.seconds(Int64.max), .seconds(Int64.min), .seconds(1), .seconds(Int64.max)] {
      estimate.add(sample)
      #expect(estimate.smoothed >= .zero && estimate.smoothed <= .seconds(3600))
      #expect(estimate.scaled(by: 2).bound <= .seconds(4 * 2 * 3600 + 2 * 3600))
    }
  }

  @Test("a scaled estimate multiplies its time and its bound")
  func scales() {
    let estimate = RoundTripEstimate(.milliseconds(10)).scaled(by: 2)
    #expect(estimate.smoothed == .milliseconds(20))
    #expect(estimate.bound == .milliseconds(60))
  }

  @Test("an optional estimate begins with its first sample")
  func optionalEstimate() {
    var estimate: RoundTripEstimate?
    estimate.add(.milliseconds(8))
    #expect(estimate == RoundTripEstimate(.milliseconds(8)))
    estimate.add(.milliseconds(16))
    #expect(estimate?.smoothed == .milliseconds(9))
  }
}
