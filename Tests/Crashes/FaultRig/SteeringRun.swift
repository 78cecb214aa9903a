internal import Glibc
internal import Spool

/// What `spoolrun url`, `prioritise` and `get` do to the job `a`.
enum SteeringRun {
  /// - Parameter change: `url`, `normal`, `low` or `get`.
  /// - Returns: the exit status.
  static func run(_ location: String, change: String, _ system: System, say: (String) -> Void) -> Int32 {
    umask(0o077)
    let (owner, boot) = WorkerID.current()
    let name = FileName("a")
    do throws(SpoolError) {
      let spool = try Spool(location, owner: owner, boot: boot, system: system)
      switch change {
      case "url":
        let relinking = Relinking(to: ["https://host/new"], shownURL: "https://host/new", isSame: false) { _ in nil }
        guard case .relinked = try Steering(spool).relink(name, in: nil, relinking) else { return 1 }
      case "get":
        guard let job = JobName(name), let place = try JobSearch(spool).place(of: job) else { return 1 }
        try Steering(spool).requeue(place, as: job, asking: "https://host/new\n# mine\n")
      default:
        guard let gesture = Gesture(rawValue: change), case .moved = try Steering(spool).perform(gesture, name) else {
          return 1
        }
      }
      return 0
    } catch {
      say("\(error)")
      return 74
    }
  }
}
