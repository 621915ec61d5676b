import Glibc
import Testing

@testable import NetOptEngine

/// What `LiveConnection` records about an open connection: its nghttp2 session, the last stream of the
/// server's GOAWAY, and whether netopt has ended it.
@Suite struct LiveConnectionTests {
  @Test("the address of a freed session belongs to the connection that uses it next")
  func sessions() throws {
    // Two addresses of sessions. `LiveConnection` only compares addresses, so no sessions need to exist.
    let (session, other) = (
      try #require(UnsafeRawPointer(bitPattern: 16)), try #require(UnsafeRawPointer(bitPattern: 32))
    )
    var first: LiveConnection? = LiveConnection(5)
    first?.setSession(session)
    #expect(LiveConnection.withSession(session) === first)
    first?.removeSession()
    #expect(LiveConnection.withSession(session) == nil && first?.session == nil)
    first?.setSession(session)
    let second = LiveConnection(6)
    second.setSession(session)
    #expect(LiveConnection.withSession(session) === second)
    // The end of the first connection does not change the session of the second.
    first = nil
    #expect(LiveConnection.withSession(session) === second)
    second.setSession(other)
    #expect(LiveConnection.withSession(session) == nil && LiveConnection.withSession(other) === second)
  }

  @Test("a later GOAWAY can lower the last stream and never raises it")
  func goaway() {
    let connection = LiveConnection(5)
    #expect(connection.lastStream == nil)
    // The last stream that each GOAWAY names, and the value of `lastStream` after it.
    for (stream, last) in [(.max, .max), (7, 7), (9, 7), (5, 5)] as [(Int32, Int32)] {
      connection.noteGoAway(lastStream: stream)
      #expect(connection.lastStream == last)
    }
  }

  @Test("a connection that netopt ends takes no request and leaves the descriptor to libcurl")
  func ended() throws {
    var sockets: [Int32] = [-1, -1]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &sockets) == 0)
    defer { for socket in sockets { close(socket) } }
    let connection = LiveConnection(sockets[0])
    #expect(!connection.isGivenUp)
    connection.end()
    #expect(connection.isGivenUp && !connection.isSilent)
    var byte: UInt8 = 0
    #expect(recv(sockets[1], &byte, 1, 0) == 0, "the peer sees the end")
    #expect(fcntl(sockets[0], F_GETFD) >= 0, "the descriptor is still libcurl's to close")
    #expect(send(sockets[0], &byte, 1, Int32(MSG_NOSIGNAL)) == -1 && errno == EPIPE)
  }
}
