/// libcurl's timer on the loop.
final class CurlTimer: LoopTimer {
  private unowned let multi: CurlMulti

  init(_ multi: CurlMulti) {
    self.multi = multi
    super.init()
  }

  override func fire() { multi.onLoop(()) { multi, _ in multi.timerFired() } }
}

/// Fires when the next probe may begin TLS.
final class HandshakeTimer: LoopTimer {
  private unowned let multi: CurlMulti

  init(_ multi: CurlMulti) {
    self.multi = multi
    super.init()
  }

  override func fire() { multi.onLoop(()) { multi, _ in multi.beginHandshake() } }
}

/// Fires when a connection is not new any more.
final class NewConnectionsTimer: LoopTimer {
  private unowned let multi: CurlMulti

  init(_ multi: CurlMulti) {
    self.multi = multi
    super.init()
  }

  override func fire() { multi.onLoop(()) { multi, _ in multi.newConnectionsHadTheirTime() } }
}

/// Fires when the requests that wait for their answers are to be looked at.
final class WaitTimer: LoopTimer {
  private unowned let multi: CurlMulti

  init(_ multi: CurlMulti) {
    self.multi = multi
    super.init()
  }

  override func fire() { multi.onLoop(()) { multi, _ in multi.waitLookIsDue() } }
}
