import Testing

@testable import NetOptEngine

/// Which connection a session of nghttp2 belongs to.
@Suite struct LiveConnectionTests {
  @Test("the address of a session that is gone may be another connection's session")
  func sessions() throws {
    // Nothing is at these addresses; they are only compared.
    let (session, other) = (
      try #require(UnsafeRawPointer(bitPattern: 16)), try #require(UnsafeRawPointer(bitPattern: 32))
    )
    var first: LiveConnection? = LiveConnection(5)
    first?.carries(session)
    #expect(LiveConnection.carrying(session) === first)
    first?.carriesNothing()
    #expect(LiveConnection.carrying(session) == nil && first?.session == nil)
    first?.carries(session)
    let second = LiveConnection(6)
    second.carries(session)
    #expect(LiveConnection.carrying(session) === second)
    // The end of the first one leaves the second one's session alone.
    first = nil
    #expect(LiveConnection.carrying(session) === second)
    second.carries(other)
    #expect(LiveConnection.carrying(session) == nil && LiveConnection.carrying(other) === second)
  }

  @Test("GOAWAY may leave out more streams later, and never fewer")
  func goaway() {
    let connection = LiveConnection(5)
    #expect(connection.lastStream == nil)
    for (stream, last) in [(.max, .max), (7, 7), (9, 7), (5, 5)] as [(Int32, Int32)] {
      connection.leaves(after: stream)
      #expect(connection.lastStream == last)
    }
  }
}
