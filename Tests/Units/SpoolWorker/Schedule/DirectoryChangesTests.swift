import Glibc
import Testing

@testable import Spool
@testable import SpoolWorker

/// What another host has changed shows by the times of directories.
@Suite struct DirectoryChangesTests {
  /// Notes looks at the directory: the time that it has, in seconds, nil where it is gone; and when, in milliseconds.
  private func notes(_ looks: [(stamp: Int?, at: Int64)]) -> [Bool] {
    var change = DirectoryChange()
    return looks.map { look in
      let stamp = look.stamp.map { seconds in
        let time = FileStatus.Stamp.Time(timespec(tv_sec: seconds, tv_nsec: 0))
        return FileStatus.Stamp(size: 4096, modified: time, changed: time)
      }
      return change.note(stamp, at: look.at)
    }
  }

  @Test func eachChangeIsSeenTwice() {
    #expect(
      notes([(1, 0), (1, 1500), (1, 3000), (1, 4500), (6, 6000), (6, 7500), (6, 9000), (nil, 10_500)])
        == [true, true, false, false, true, true, false, true])
  }

  /// A second job comes right after the names were read, and before the clock of the file system has moved on.
  @Test func twoChangesInOneTick() {
    #expect(notes([(1, 0), (1, 500), (1, 1000), (1, 2000)]) == [true, true, true, false])
  }
}
