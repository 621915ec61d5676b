import Foundation
import Glibc
import Testing

@testable import TestTools

@Suite struct WatchdogTests {
  @Test("the watchdog kills the processes that it watches and removes its directory")
  func killsWatchedProcesses() throws {
    let watchdog = try Watchdog()
    let forgotten = try Spawn.start("/bin/sleep", ["600"])
    let watched = try (0..<2).map { _ in try Spawn.start("/bin/sleep", ["600"]) }
    for id in [watched[0], forgotten, watched[1]] { watchdog.watch(id) }
    watchdog.unwatch(forgotten)
    #expect(FileManager.default.fileExists(atPath: watchdog.directory))
    watchdog.end()

    for id in watched {
      var status: Int32 = 0
      #expect(waitpid(id, &status, 0) == id)
      #expect(status == SIGKILL)
    }
    #expect(waitpid(forgotten, nil, WNOHANG) == 0)
    #expect(!FileManager.default.fileExists(atPath: watchdog.directory))
    kill(forgotten, SIGKILL)
    waitpid(forgotten, nil, 0)
  }
}
