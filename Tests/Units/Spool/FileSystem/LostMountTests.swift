import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// A mount that is gone, in the words of several file systems.
@Suite struct LostMountErrorTests {
  static let onShared: [Errno] = [.ioError, .timedOut, .hostIsDown, .noRouteToHost, .connectionReset]

  @Test(arguments: onShared + [.socketNotConnected, .connectionAbort, .staleNFSFileHandle])
  func itIsLostIfNothingCanBeRead(errno: Errno) throws {
    let isGone = Switch()
    let fixture = try Fixture(hook: Probe { _ in isGone.isOn ? .fail(errno) : nil }, kind: .fuse)
    let error = SpoolError(call: .rename, path: "new/a", errno: errno)
    #expect(!fixture.spool.isLost(error), "only one file of it")
    isGone.turnOn()
    #expect(fixture.spool.isLost(error))
    #expect(try !fixture.spool.isInPlace())
    #expect(try fixture.spool.reopened() == nil)
  }

  /// A disk that fails is not mounted again.
  @Test(arguments: onShared)
  func aLocalDiskIsNotLost(errno: Errno) throws {
    let fails = Switch()
    let fixture = try Fixture(hook: Probe { _ in fails.isOn ? .fail(errno) : nil })
    fails.turnOn()
    #expect(!fixture.spool.isLost(SpoolError(call: .rename, path: "new/a", errno: errno)))
  }
}
