import Spool
import TestSupport

/// A spool whose files a test writes by hand.
struct HandmadeSpool {
  let directory: TemporarySpool
  let spool: Spool
  let now = Timestamp.now()
  /// What the claims of this process are named by.
  let own: WorkerID

  init() throws {
    directory = try TemporarySpool()
    let (owner, boot) = WorkerID.current()
    own = owner
    spool = try Spool(directory.root, owner: owner, boot: boot)
  }
}

/// A suite with such a spool.
protocol HandmadeSpoolSuite {
  var made: HandmadeSpool { get }
}

extension HandmadeSpoolSuite {
  var directory: TemporarySpool { made.directory }
  var spool: Spool { made.spool }
  var now: Timestamp { made.now }
  var own: WorkerID { made.own }

  /// - Parameter age: of the file, in seconds.
  func write(_ path: String, _ text: String, age: Int = 0) throws {
    try writeFile(directory.path(path), Array(text.utf8))
    try setModificationTime(directory.path(path), to: Int(now.seconds) - age)
  }
}
