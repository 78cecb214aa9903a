extension JobKey {
  /// All keys, in the order in which help lists them and a job is written.
  package static let all = [url] + place + payload + handling

  package static let url = JobKey(
    "url", list: \.urls, .line, valueName: "url", option: .argument, isPerJob: true,
    help: "Where the file is; more than one are mirrors.")

  private static let place = [
    JobKey(
      "output", \.output, .outputPath, valueName: "path", option: .value(short: "o"), isPerJob: true,
      help: "Where the payload goes, below the output root. (default: the URL's last name)")
  ]

  private static let payload =
    [
      JobKey(
        "size", \.expected.size, .fileSize, valueName: "bytes", isPerJob: true, help: "Its size in bytes.")
    ]
    + DigestAlgorithm.allCases.map { algorithm in
      JobKey(
        algorithm.rawValue, \.expected.digests[algorithm], .digest(algorithm), valueName: "hex", isPerJob: true,
        help: algorithm.help)
    }

  private static let handling = [
    JobKey(
      "header", list: \.headers, .header, valueName: "field", mayNameHost: true,
      help: "A header line to send, such as 'Authorization: Bearer …'; may be repeated."),
    JobKey(
      "overwrite", \.overwrite, .yesOrNo, valueName: "yes|no", option: .flag, help: "Replace a file that is there."),
    JobKey(
      "attempts", \.attempts, .number(JobRequest.attemptRange), valueName: "n",
      help: "How often to try. (default: \(JobRequest.defaultAttempts))"),
    JobKey(
      "expires", \.expires, .date, valueName: "time", help: "When to give up, such as 2026-12-01T00:00:00Z."),
    JobKey(
      "timeout", \.timeout, .timeout, valueName: "time", help: "Idle and perhaps total time, such as '60s 7d'."),
    JobKey(
      "max-size", \.maxSize, .largestSize, valueName: "size", help: "What is larger is refused, such as 2G."),
    JobKey("limit-rate", \.limitRate, .rate, valueName: "rate", help: "Bytes a second, such as 2M."),
    JobKey(
      "min-rate", \.minRate, .minimumRate, valueName: "rate",
      help: "Bytes a second that a server has to bring, such as '1k over 5m'; 0: any."),
    JobKey(
      "connections", \.connections, .number(JobRequest.connectionRange), valueName: "n",
      help: "How many connections to fetch it over, up to 32. (default: the worker's)"),
  ]
}
