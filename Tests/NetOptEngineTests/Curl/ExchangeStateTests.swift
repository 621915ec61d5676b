import NetOptCore
import TestTools
import Testing

@testable import NetOptEngine

@Suite struct ExchangeStateTests {
  /// Returns a new channel for a body.
  private static func channel() -> BodyChannel { BodyChannel(lowWater: 1, timings: Timings()) }

  /// Returns the name of a state. The test compares names because a channel is equal only to itself.
  private static func name(_ state: ExchangeState) -> String {
    switch state {
    case .queued: "queued"
    case .readingBody: "readingBody"
    case .waitingForRace: "waitingForRace"
    case .racing: "racing"
    case .sending: "sending"
    case .receiving: "receiving"
    case .finished: "finished"
    }
  }

  /// Makes each of the states.
  private static let states: [@Sendable () -> ExchangeState] = [
    { .queued }, { .readingBody }, { .waitingForRace }, { .racing }, { .sending }, { .receiving(channel()) },
    { .finished },
  ]

  /// The transitions. `leads` has the name of each state that the transition changes, and the name of the
  /// state to which it changes. The transition leaves all other states as they are.
  private static let transitions:
    [(name: String, apply: @Sendable (inout ExchangeState) -> Void, leads: [String: String])] = [
      ("readBody", { $0.readBody() }, ["queued": "readingBody"]),
      ("queueAgain", { $0.queueAgain() }, ["readingBody": "queued", "waitingForRace": "queued"]),
      ("waitForRace", { $0.waitForRace() }, ["queued": "waitingForRace"]),
      ("race", { $0.race() }, ["queued": "racing", "waitingForRace": "racing"]),
      ("win", { _ = $0.win() }, ["racing": "sending"]),
      ("withdrawRequest", { $0.withdrawRequest() }, ["sending": "racing"]),
      ("receive", { $0.receive(into: channel()) }, ["racing": "receiving", "sending": "receiving"]),
      (
        "finish", { _ = $0.finish() },
        [
          "queued": "finished", "readingBody": "finished", "waitingForRace": "finished", "racing": "finished",
          "sending": "finished", "receiving": "finished",
        ]
      ),
    ]

  @Test("every transition leads from every state to the state in the table")
  func table() {
    for transition in Self.transitions {
      for make in Self.states {
        var state = make()
        let before = Self.name(state)
        transition.apply(&state)
        #expect(
          Self.name(state) == transition.leads[before] ?? before, "\(transition.name) in \(before)")
      }
    }
  }

  @Test(
    "in any order of events the caller gets one ending, one leg sends, and the body has one channel",
    arguments: 0..<4)
  func anyOrder(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    for _ in 0..<2000 {
      var state = ExchangeState.queued
      // How often the caller was told of the end.
      var endings = 0
      // How many legs may send the request: 1 after a win, and 0 again after the request was withdrawn.
      var senders = 0
      // The channel from which the caller reads the body.
      var channel: BodyChannel?
      for _ in 0..<24 {
        switch random.below(8) {
        case 0: state.readBody()
        case 1: state.queueAgain()
        case 2: state.waitForRace()
        case 3: state.race()
        case 4: if state.win() { senders += 1 }
        case 5:
          if case .sending = state { senders -= 1 }
          state.withdrawRequest()
        case 6:
          let new = Self.channel()
          state.receive(into: new)
          if let body = state.body {
            #expect(channel == nil || body === channel, "the caller reads from the first channel")
            channel = body
          }
        default:
          guard random.below(4) == 0, let ending = state.finish() else { continue }
          endings += 1
          // A caller that reads a body gets the end through the body's channel. Any other caller gets an
          // answer.
          if case .body(let body) = ending { #expect(body === channel) } else { #expect(channel == nil) }
        }
        #expect(senders == 0 || senders == 1)
        #expect(endings == (state.isFinished ? 1 : 0))
        #expect(!state.isFinished || state.body == nil)
      }
    }
  }
}
