/// A timer that runs an action of a `CurlMulti` when it fires. The `CurlMulti` owns the timer.
final class MultiTimer: LoopTimer {
  private unowned let multi: CurlMulti
  private let action: (isolated CurlMulti) -> Void

  init(_ multi: CurlMulti, _ action: @escaping (isolated CurlMulti) -> Void) {
    self.multi = multi
    self.action = action
    super.init()
  }

  override func fire() { multi.onLoop(self) { multi, timer in timer.action(multi) } }
}
