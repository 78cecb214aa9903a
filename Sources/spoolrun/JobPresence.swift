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
    if let (place, text) = try spool.job(named: name) {
      return text.map { Self.isSame(request, $0.request) } == true ? .request(place) : .name(place)
    }
    return try spool.firstJob { Self.isSame(request, $0.request) }.map { .request($0.place) }
  }

  /// Whether two requests are for the same job: they have a URL or the text for the hook `resolve` in
  /// common, and the same output.
  static func isSame(_ left: JobRequest, _ right: JobRequest) -> Bool {
    !Set(keys(of: left)).isDisjoint(with: keys(of: right))
  }

  /// For each URL, and for the text of `resolve:`, bytes that any other request for the same job has, too.
  static func keys(of request: JobRequest) -> [[UInt8]] {
    let place = JobPlan.rootAndOutput(of: request) ?? ""
    let sources = request.urls.map(\.text) + (request.resolve.map { ["resolve: \($0.text)"] } ?? [])
    return sources.map { Array("\($0)\n\(place)".utf8) }
  }
}
