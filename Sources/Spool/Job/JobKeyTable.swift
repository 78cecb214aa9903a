extension JobKey {
  /// All keys, in the order in which help lists them and a job is written.
  package static let all = ofJobs + network
  /// Those that a job may have.
  package static let ofJobs = [url, resolve] + place + payload + handling

  /// A first line without a key is a URL as well (spool(5), JOBS).
  package static let url = JobKey(
    "url", list: \.urls, .line, valueName: "url", option: .argument, scope: .job,
    help: "URL of the file; several are mirrors of it.")

  /// A job may have it in place of ``url``.
  package static let resolve = JobKey(
    "resolve", \.resolve, .line, valueName: "text", scope: .job,
    help: "Ask the spool's hook `resolve` with this text for the URL before each attempt.")

  private static let place = [output, root, mode]

  /// Relative, and without `..`: ``OutputPath/defect(of:)``.
  package static let output = JobKey(
    "output", \.output, .outputPath, valueName: "path", option: .value(short: "o"), scope: .job,
    help: "Path of the downloaded file below the output root, or its directory/. (default: the URL's last part)")

  /// A name, not a path: only the spool's owner can make the links in `roots/`.
  package static let root = JobKey(
    "root", \.root, .rootName, valueName: "name", scope: .job,
    help: "Output root, as a name in the spool's directory roots. (default: the worker's)")

  /// chmod(2).
  private static let mode = JobKey(
    "mode", \.mode, .payloadMode, valueName: "mode",
    help: "Permissions of the downloaded file in octal, such as 644. (default: 600)")

  /// Of the payload, not of one response.
  package static let size = JobKey(
    "size", \.expected.size, .fileSize, valueName: "bytes", scope: .job, help: "Size in bytes.")

  private static let payload =
    [size]
    + DigestAlgorithm.allCases.map { algorithm in
      JobKey(
        algorithm.rawValue,
        RequestField(
          get: { $0.expected.digests[algorithm] }, set: { $0.expected.digests[algorithm] = $1 }),
        .digest(algorithm), valueName: "hex", scope: .job, help: algorithm.help)
    }
    + [
      JobKey(
        "type", \.types, .mediaTypes, valueName: "types",
        help: "Media types that the server may send the file as, such as application/zip or 'image/*'."),
      JobKey(
        "encoded", \.encoded, .encodedBody, valueName: "way",
        help: "What to do with a file in a Content-Encoding that nobody asked for: keep or decode it."),
      JobKey(
        "digests", \.digests, .digestNames, valueName: "names",
        help: "Digests to compute for the receipt, such as 'sha256 md5'."),
    ]

  /// Sent to the origin of each URL, or only to the host that `header@HOST` names; dropped when a redirect leads away.
  package static let header = JobKey(
    "header", list: \.headers, .header, valueName: "field", mayNameHost: true,
    help: "Header field to send, such as 'Authorization: Bearer …'; may be repeated.",
    inheriting: { own, defaults in own.added(to: defaults) })

  /// RFC 9110 section 10.1.5.
  package static let userAgent = JobKey(
    "user-agent", \.userAgent, .text, valueName: "text", help: "The User-Agent to send. (default: spoolrun/VERSION)")

  /// RFC 9110 section 10.1.3.
  package static let referer = JobKey(
    "referer", \.referer, .pageURL, valueName: "url", help: "URL of the page that leads to the file, for Referer.")

  /// The order of jobs that wait; a running job is not stopped for another, unless it is low.
  package static let priority = JobKey(
    "priority", \.priority, .priority, valueName: "class", help: "Which jobs start first: high, normal or low.")

  private static let handling = [
    header,
    userAgent,
    referer,
    JobKey(
      "overwrite", \.overwrite, .yesOrNo, valueName: "yes|no", option: .flag, help: "Replace an existing file."),
    JobKey(
      "attempts", \.attempts, .number(JobRequest.attemptRange), valueName: "n",
      help: "Maximum number of attempts. (default: \(JobRequest.defaultAttempts))"),
    JobKey(
      "expires", \.expires, .date, valueName: "time", help: "Give up at this time, such as 2026-12-01T00:00:00Z."),
    JobKey(
      "timeout", \.timeout, .timeout, valueName: "time",
      help: "Idle time and optionally total time, such as '60s 7d'."),
    JobKey(
      "max-size", \.maxSize, .largestSize, valueName: "size", help: "Refuse a larger file, such as 2G."),
    JobKey(
      "limit-rate", \.limitRate, .rate, valueName: "rate",
      help: "Maximum bytes per second, such as 2M, or by the time of day, such as '2M 08:00-23:00, none'."),
    JobKey(
      "min-rate", \.minRate, .minimumRate, valueName: "rate",
      help: "Minimum bytes per second, such as '1k over 5m'; 0 for none."),
    JobKey(
      "connections", \.connections, .number(JobRequest.connectionRange), valueName: "n",
      help: "Number of connections, at most 32. (default: the worker's)"),
    priority,
  ]
}
