internal import Spool
internal import SpoolWorker

/// Whether a spool has a job already, for `spoolrun add --new`.
struct JobPresence {
  let spool: Spool

  enum Finding {
    /// A job of the same name. It may be another one.
    case name(JobPlace)
    /// A job or a receipt with one of the URLs and the same output.
    case request(JobPlace)

    var place: JobPlace {
      switch self {
      case .name(let place), .request(let place): place
      }
    }
  }

  /// Looks for the name first, which is quick, and then reads the jobs in all states.
  /// - Throws: ``SpoolError``, EACCES for a user who may only drop jobs.
  func find(_ request: JobRequest, as name: JobName) throws(SpoolError) -> Finding? {
    if let place = try spool.place(of: name) {
      let text = try? spool.job(place.directory, place.name)
      return text.map { Self.isSame(request, $0.request) } == true ? .request(place) : .name(place)
    }
    return try spool.firstJob { Self.isSame(request, $0.request) }.map { .request($0.place) }
  }

  /// Whether two jobs have a URL in common, and the same output.
  static func isSame(_ left: JobRequest, _ right: JobRequest) -> Bool {
    !Set(left.urls.map(\.text)).isDisjoint(with: right.urls.map(\.text))
      && JobPlan.rootAndOutput(of: left) == JobPlan.rootAndOutput(of: right)
  }
}
